"""Records that describe captures: their fields, their XML, the jobs in git that they describe.

Public: every module. Pure, apart from `captures`, `catalogue`, `catalogue_database` and `people`, which read and write
git, tables and people.toml. Imports model, system, config, git, document, index, history.
"""
