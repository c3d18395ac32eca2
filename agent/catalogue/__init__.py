"""Makes the records of captures: their fields from git and from the job's report, their counts by difference.

Public: `keeping`, `circumstances`, `describing`, `counting`. Used by jobs, service and commands, by one thread. Imports
system, jobfolder, capture, and of webarcfs archive and warc.
"""
