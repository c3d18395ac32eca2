"""The repositories of domains: the only folder that knows the git command, and repositories through pygit2.

Public: `repository` (refs, states, transfer), `objects` (blobs, trees, commits), `writing` (many objects at once).
`Objects` may be read by several threads; whoever writes holds the lock of the domain or of its publication.
"""
