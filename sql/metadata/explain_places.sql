-- The same statement compiled and not run: whether SQLite takes the condition that follows.
EXPLAIN SELECT commitTag, path FROM metadata
