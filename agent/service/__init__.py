"""The agent that runs unattended: its loop, what is due, jobs as processes, its state for `status`.

Public: `loop.Service`, `agentlock`, `statusview`, `worker` (the process of one job). One thread; jobs are processes.
Imports jobs, upkeep, indexing, jobfolder, system.
"""
