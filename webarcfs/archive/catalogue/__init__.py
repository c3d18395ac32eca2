"""Records that describe captures: their fields, their XML, the jobs in git that they describe.

Public: every module. Pure, apart from `captures`, which reads git. Imports model, config, git, document, history.
"""
