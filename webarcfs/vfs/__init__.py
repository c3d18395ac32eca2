"""The archive as nodes, without FUSE: the states of domains, the additions on top of them, the kinds of nodes.

Public: `node` (the interface of every node, and the caller), `content` (bodies, and bounds of memory), `view` (which
state is shown; its thread follows publications), `root` (the mount's shape). Nodes are immutable and safe for any
thread. Request threads read; the view's thread takes over new states; the committer settles additions.
"""
