"""Additions: confirmed by a mount into its journal, then commits, each exactly once.

Public: `journal` (the mount's side: confirm, release), `journal_log` (for all processes), `commit_additions` (commit,
fold in, replay of dead mounts' logs), `placement`. A mount's request threads confirm, its committer releases. Whoever
commits holds the committing lock of the domain.
"""
