"""The reports of jobs, for people and programs: summary.json, tables; what the archive takes.

Public: `report`, `tables`, `storage`. Reports of jobs are written when they end.
"""
