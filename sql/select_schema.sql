-- What SQLite itself keeps beside a schema has no statement.
SELECT sql FROM sqlite_master WHERE sql IS NOT NULL;
