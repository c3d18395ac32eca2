"""Snapshots that are not released, shown to staff by the room's own replay, below `/s/<token>/`.

Public: `replay`. Imports archive, webarcfs.room, and desk's shared, look and pages.
"""
