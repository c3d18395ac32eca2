"""Makes the records of captures: their fields from git and from the job's report, their counts by difference.

Public: `describing`, `counting`. Used by commands. Imports system, and of webarcfs archive and warc.
"""
