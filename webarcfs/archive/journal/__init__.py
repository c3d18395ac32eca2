"""The journal: additions that a mount has confirmed and git does not have yet.

Public: `journal` (the mount's side: confirm, release), `log_reader` (for all processes), `name_claims`. A mount's
request threads confirm, its committer releases. Imports model, system, config, document.
"""
