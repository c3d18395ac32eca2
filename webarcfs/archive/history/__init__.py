"""The order of publications: the counter, the feed, the lists of a domain, comparison of versions and snapshots.

Public: `sequence` (a publication's number, the feed, repair of an interrupted one), `redirect_lists`, `versions`.
Writers hold the domain's lock and then the counter's.
"""
