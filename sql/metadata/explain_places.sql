-- ask_places.sql, compiled and not run: whether SQLite accepts the condition that follows.
EXPLAIN SELECT commitTag, path FROM metadata
