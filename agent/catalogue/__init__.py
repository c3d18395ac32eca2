"""Makes the record of each crawl: its fields from git and from the job's report, its counts by difference.

Public: `recording` (describes a crawl, and keeps its record), `stepfolders` (the steps that were asked for). Used by
jobs, the service and commands, by one thread.
"""
