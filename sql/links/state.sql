-- Changes when another process has written.
PRAGMA data_version;
