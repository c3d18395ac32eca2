"""The default adapter, on the low-level API of libfuse 3: an inode for each version, so the kernel may cache all.

Public: `session.serve`. Its request threads, workers and close batches are described in `session`, `operations` and
`write_operations`.
"""
