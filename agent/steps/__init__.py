"""The steps of a snapshot after its capture: counted, converted, indexed, checked, backed up.

Public: `running.run_step`, `running.run_waiting`. A step is one process at a time for a snapshot. Imports jobs, upkeep,
catalogue, indexing, jobfolder, system, and of webarcfs archive, content, warc and search.

Derived forms of documents: where they are kept, how XHTML is made, what a page is counted by.

Public: `derived_forms`, `tidy`, `pagefacts`. Imports of webarcfs archive and content.
"""
