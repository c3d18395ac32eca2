"""The journal: additions that a mount has confirmed and that are not in git yet.

Public: `journal` (the mount's side: confirm, release), `log_reader` (everybody's side), `name_claims`. A mount's
request threads confirm, its committer releases. Imports model, system, config, document.
"""
