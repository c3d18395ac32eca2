"""The archive as nodes, without FUSE: attributes and content of nodes, the caller, bounds of memory.

Public: `node` (the interface of every node), `content` (bodies), `caller`, `limits`. `state/` has the current state of
each domain, `tree/` the kinds of nodes. Nodes are immutable and safe for any thread. Imports archive/; never mount/.

The state of each domain that the mount shows: its commit in git, the additions on top of it, answers to conditions.

Public: `domain_states` (taking over states, detecting moves), `domain_reader`, `overlay`, `ownership`,
`query_answers`. Request threads read; the view's thread takes over new states; the committer settles additions.
Imports archive/ and vfs/.

The nodes of the mount: a class for each kind of folder and file, the root, and the view over all of them.

Public: `view` (which state is shown; its thread follows publications), `root` (the mount's shape). Imports archive/,
vfs/ and vfs/state.
"""
