"""Files of other crawlers as the capture of a job: opens each format, selects records and resolves revisits.

Public: `sources`, `parts`, `warcfile`, `revisits`, `importedfiles`, `captures`. Used by the thread of the job. Imports
system, policy, frontier, jobfolder, capture, and of webarcfs archive, content, warc.
"""
