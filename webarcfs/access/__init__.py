"""Who may see what of an archive, decided in one place, in three forms that agree.

Public: `gate.Gate`, `access_rules` (what decides, and access.aclj), and what narrows queries, links and repositories to
a reader. Any thread may have a gate of its own. Nothing here writes to an archive, but for access.aclj.
"""
