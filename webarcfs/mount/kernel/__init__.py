"""The kernel's side of the mount without libfuse: inodes that it knows, listings, what it must drop, its bytes.

Public: `inode_table`, `invalidation` (why notifying cannot deadlock), `readdir`, `trimmer`, `protocol`. Request
threads and the view's thread enter. Imports archive/ and view/.
"""
