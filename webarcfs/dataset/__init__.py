"""What researchers take away: pages, texts, links and counts of an archive as tables, and the graph of its hosts.

Public: `making` (`make_folder` and `make_stream` of a `DatasetOrder`), `narrowing` (what of the archive goes into it),
and `readers_versions` (the versions that somebody may see, with their captures). `out` is the name of the folder, which
it gets when it is complete. `stop()` is asked between batches of rows; then Interrupted is raised. Nothing here writes
to an archive, and nothing holds more than a batch of rows in memory.
"""
