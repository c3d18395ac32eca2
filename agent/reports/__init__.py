"""The reports of jobs, for people and programs: crawl.log, summary.json, tables.

Public: `report`, `tables`. Written by the job when it ends. Imports system, policy, frontier, jobfolder, pipeline,
stages.
"""
