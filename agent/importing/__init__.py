"""Files of other crawlers as the capture of a job: opens each format, selects records and resolves revisits.

Public: `sources`, `parts`, `warcfile`, `revisits`, `importedfiles`, `captures`. Used by the thread of the job. Imports
system, policy, frontier, jobfolder, capture, and of webarcfs archive, content, warc.

Which captures of foreign files are one crawl, and how many snapshots of a host a crawl needs.

Public: `grouping`, `cutting`, `naming`. Pure; used by the thread of the job. Imports nothing of ours.

The WARCs of `webarc export`, made into the same snapshots again: bodies into git, trees by the ids that they name.

Public: `records` (what a record says, checked), `intake` (files → blobs and rows), `trees` (rows → trees). Nothing here
moves a ref. Used by the thread of the job. Imports importing, and of webarcfs archive and warc.

The plan of an import, written before anything is published, and the frontier of each snapshot that follows from it.

Public: `planning`, `filling`. Used by the thread of the job. Imports policy, frontier, capture, importing, and of
webarcfs archive, warc.
"""
