"""Files of other crawlers as the crawls of jobs: opens each format, selects records, resolves revisits, plans crawls.

Public: every module. `import_sources` and `warcfile` read files into an index; `crawls` decides, purely, which captures
are one crawl and how many snapshots of a host a crawl needs; `planning` writes the plan before anything is published.
`exported_trees` makes WARCs of `webarc export` into the same snapshots again; it moves no ref. Used by the thread of
the job.
"""
