"""New files, writes, closes, renames, and the threads that settle and commit them. It needs no mount.

Public: `writer` (for adapters), `addition_names`, `service` (all that writing needs, from start to end). Request
threads enter; closes are confirmed in workers; the committer and settling are threads of their own.
"""
