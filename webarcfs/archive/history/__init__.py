"""The order of publications: the counter, the feed, merging with additions, comparison of versions and snapshots.

Public: `sequence` (a publication's number, repair of an interrupted one), `feed`, `merge`, `versions`, `statistics`.
Writers hold the domain's lock and then the counter's. Imports model, system, config, git, document.
"""
