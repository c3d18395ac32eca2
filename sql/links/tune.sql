-- Pages of the file that the writer may hold, in KiB.
PRAGMA cache_size = -65536;
