-- The writer's page cache: 64 MiB (a negative value is in KiB).
PRAGMA cache_size = -65536;
