"""Shared by the stages: the document, the run on a domain, the removal of ARCs, the order of overlapping crawls.

Public: every module. Used by the thread of the job. Imports system and jobfolder, and of webarcfs archive, content,
warc.
"""
