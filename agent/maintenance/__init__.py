"""Backups, verification and the daily maintenance of an archive.

Public: `backups`, `verification`, `maintenance`. Called by commands; the agent starts the maintenance.
"""
