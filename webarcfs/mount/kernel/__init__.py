"""The kernel's side of the mount without libfuse: its inodes, listings, invalidation, its message format.

Public: `inode_table`, `invalidation` (why notifying cannot deadlock), `readdir`. Request threads and the view's thread
enter.
"""
