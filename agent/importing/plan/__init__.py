"""The plan of an import, written before anything is published, and the frontier of each snapshot that follows from it.

Public: `planning`, `filling`. Used by the thread of the job. Imports policy, frontier, capture, importing, and of
webarcfs archive, warc.
"""
