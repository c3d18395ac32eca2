"""Backups, verification and the daily maintenance of an archive.

Public: `backups`, `verification`, `maintenance`. Called by commands; the agent starts the maintenance. Imports
indexing, jobfolder, frontier, system, and of webarcfs archive.
"""
