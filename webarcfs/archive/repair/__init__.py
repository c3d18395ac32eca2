"""Repositories kept in order: packs put together, and small files that a disk damaged found and mended.

Public: `mending` (what `recover` mends in a repository, and what `verify` finds there), `repacking` (packs and the
commit-graph). Whoever mends holds the locks of the domain. Imports every other folder of archive/ but document and
index.
"""
