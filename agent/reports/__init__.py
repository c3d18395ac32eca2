"""The reports of jobs, for people and programs: crawl.log, summary.json, tables; what the archive takes.

Public: `report`, `tables`, `shares`, `storage`. Reports of jobs are written when they end. Imports system, policy,
frontier, jobfolder, pipeline, stages.
"""
