-- The value changes when another process has written.
PRAGMA data_version;
