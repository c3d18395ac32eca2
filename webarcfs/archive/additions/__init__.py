"""Additions from the journal become commits, each exactly once.

Public: `commit_additions` (commit, fold in, replay of dead mounts' logs), `pacing` (when the next commit is due).
The committer of a mount, a publication and the agent run it; each holds the committing lock of the domain. Imports
every other folder of archive/ but index.

The journal: additions that a mount has confirmed and git does not have yet.

Public: `journal` (the mount's side: confirm, release), `log_reader` (for all processes), `name_claims`. A mount's
request threads confirm, its committer releases. Imports model, system, config, document.
"""
