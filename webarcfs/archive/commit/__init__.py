"""Additions from the journal become commits, each exactly once.

Public: `commit_additions` (commit, fold in, replay of dead mounts' logs), `pacing` (when the next commit is due).
Runs in the committer of a mount, in a publication, in the agent; whoever runs it holds the committing lock of the
domain. Imports every other folder of archive/ but index.
"""
