"""Shared by the stages: the document, the run on a domain, the removal of ARCs, the lists, the last stage, publish.

Public: every module. Used by the thread of the job.
"""
