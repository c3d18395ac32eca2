"""The unattended agent: its loop, its scheduler, the processes of its jobs, its state for `status`.

Public: `loop.Service`, `agentlock`, `statusview`, `worker` (the process of one job). One thread; jobs are processes.
Imports jobs, upkeep, indexing, jobfolder, system.
"""
