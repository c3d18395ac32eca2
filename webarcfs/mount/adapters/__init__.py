"""Shared by both adapters: the context of a mount, the map from exceptions to errno, the counts of requests.

Public: every module. An adapter translates requests and answers, and decides nothing. It calls `live` once, registers
as the view's listener, counts each request, and answers errors by `errno_map`. Imports vfs/, mount/writing and
archive/config.

The portable adapter, on fusepy (libfuse 2): paths instead of inodes; the kernel caches nothing.

Public: `session.serve`. The only folder that knows fusepy. Imports mount/writing, mount/adapters, vfs/.
"""
