"""The steps of a crawl after its download: counted, converted, indexed, checked, backed up.

Public: `running.run_step`, `running.run_waiting`; `converting` has the derived forms of documents and HTML Tidy. A step
is one process at a time for a record.
"""
