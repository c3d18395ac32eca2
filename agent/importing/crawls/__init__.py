"""Which captures of foreign files are one crawl, and how many snapshots of a host a crawl needs.

Public: `grouping`, `cutting`, `naming`. Pure; used by the thread of the job. Imports nothing of ours.
"""
