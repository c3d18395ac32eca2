"""The repositories of domains: the only folder that knows the git command, and repositories through pygit2.

Public: `repository` (refs, states), `objects` (blobs, trees, commits), `fast_import` and `pack_writer` (many objects at
once), `transfer`, `leftlocks`. `Objects` may be read by several threads; whoever writes holds the lock of the domain or
of its publication. Imports model and system.
"""
