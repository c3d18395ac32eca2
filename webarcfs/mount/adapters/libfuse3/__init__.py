"""The default adapter, on the low-level API of libfuse 3: an inode for each version, so the kernel may cache all.

Public: `session.serve`. The only folder that knows ctypes and libfuse 3. Its request threads, workers and close
batches are described in `session`, `workers` and `close_batches`. Imports mount/kernel, mount/writing,
mount/adapters, vfs/.
"""
