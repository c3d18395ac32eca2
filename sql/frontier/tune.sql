-- Every answer is in a WARC before it is noted here, so the last transactions may be lost with the power.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
