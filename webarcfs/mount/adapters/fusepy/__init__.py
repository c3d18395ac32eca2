"""The portable adapter, on fusepy (libfuse 2): paths instead of inodes; the kernel caches nothing.

Public: `session.serve`. The only folder that knows fusepy. Imports mount/writing, mount/adapters, view/.
"""
