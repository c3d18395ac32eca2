"""The archive as nodes, without FUSE: what every node answers, bodies of files, the caller, bounds of memory.

Public: `node` (what a node answers), `content` (bodies), `caller`, `limits`. `state/` is what each domain holds now,
`tree/` what lies where. Nodes are immutable and may be used by any thread. Imports archive/; never imports mount/.
"""
