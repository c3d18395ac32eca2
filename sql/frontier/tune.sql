-- Every response is in a WARC before it is recorded here, so a power failure may lose the last transactions.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
