"""Additions from the journal become commits, each exactly once.

Public: `commit_additions` (commit, fold in, replay of dead mounts' logs), `pacing` (when the next commit is due).
The committer of a mount, a publication and the agent run it; each holds the committing lock of the domain. Imports
every other folder of archive/ but index.
"""
