"""The gate: what a reader may see of an archive, decided in one place, in three forms that agree.

Public: `gate.Gate`, `access_file`, and what narrows queries, links and repositories to a reader. `visibility` and
`access_rules` decide, and are pure. Any thread may have a gate of its own. Nothing here writes to an archive, but for
`access_file`. Imports archive.
"""
