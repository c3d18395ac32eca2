"""Upkeep of repositories: repacks them, and finds and mends small files that a disk damaged.

Public: `mending` (repairs of `recover` in a repository, and findings of `verify`), `repacking` (packs and the
commit-graph). A mender holds the locks of the domain.
"""
