"""The portable adapter, on fusepy (libfuse 2): paths instead of inodes, and nothing is kept by the kernel.

Public: `session.serve`. The only folder that knows fusepy. Imports mount/writing, mount/adapters, view/.
"""
