-- Additional tables of an import: the positions of bodies, and the revisit records that refer to them.
CREATE TABLE IF NOT EXISTS capture (
    key      TEXT PRIMARY KEY,              -- a digest of the body (sha1:BASE32), or its URL and time in seconds
    batch    INTEGER NOT NULL,
    position INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS revisit (
    id     INTEGER PRIMARY KEY,
    url    TEXT NOT NULL,                   -- canonical
    time   INTEGER NOT NULL,                -- seconds since 1970
    digest TEXT NOT NULL,                   -- as in capture; empty if the record contains none
    origin TEXT NOT NULL,                   -- the URL that it refers to, canonical; its own if it names none
    seen   INTEGER NOT NULL,                -- the time that it refers to; 0 if it names none
    head   BLOB NOT NULL                    -- of the response, as received
);
