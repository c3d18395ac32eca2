"""The archive as nodes, without FUSE: attributes and content of nodes, the caller, bounds of memory.

Public: `node` (the interface of every node), `content` (bodies), `caller`, `limits`. `state/` has the current state of
each domain, `tree/` the kinds of nodes. Nodes are immutable and safe for any thread. Imports archive/; never mount/.
"""
