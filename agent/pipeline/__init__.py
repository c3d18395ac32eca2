"""What the stages share: the document that flows, the domain's run, which ARCs go, which of two crawls is newer.

Public: every module. Used by the thread of the job. Imports system and jobfolder, and of webarcfs archive, content,
warc.
"""
