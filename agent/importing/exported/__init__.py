"""The WARCs of `webarc export`, made into the same snapshots again: bodies into git, trees by the ids that they name.

Public: `records` (what a record says, checked), `intake` (files → blobs and rows), `trees` (rows → trees). Nothing here
moves a ref. Used by the thread of the job. Imports importing, and of webarcfs archive and warc.
"""
