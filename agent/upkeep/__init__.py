"""Backups, verification and the daily maintenance of an archive.

Public: `backups`, `verification`, `maintenance`. Called by commands and by the agent's chores. Imports indexing,
jobfolder, frontier, system, and of webarcfs archive.
"""
