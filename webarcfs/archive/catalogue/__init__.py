"""Records that describe crawls: their fields, their XML, the jobs in git that they describe.

Public: every module. `record` and `workflow` are values and rules; `catalogue`, `formats` and `people`
read and write git, tables and files that people edit.
"""
