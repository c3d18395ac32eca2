"""The unattended agent: its loop, its scheduler, the processes of its jobs, its state for `status`.

Public: `loop.Service`, `agent_status`, `worker` (the process of one job). One thread; jobs are processes.
"""
