-- Additional tables of an import's frontier.db: the captures of its files, and how they become crawls and snapshots.
-- Captures are read into `found`; once all files are read they are moved to `capture`, in order of time.
BEGIN IMMEDIATE;

CREATE TABLE IF NOT EXISTS found (
    id       INTEGER PRIMARY KEY,
    source   INTEGER NOT NULL,              -- number of the file; files are numbered in the order of their SHA-256
    ordinal  INTEGER NOT NULL,              -- number of the record in the file
    name     TEXT NOT NULL,                 -- of its crawl, where the source names it; else empty
    url      TEXT NOT NULL,                 -- canonical; as it was written, for a record that is not taken
    domain   TEXT NOT NULL,                 -- host[:port]; empty for a record that is not taken
    time     INTEGER NOT NULL,              -- seconds since 1970
    fraction INTEGER NOT NULL,              -- nanoseconds of that second
    state    TEXT NOT NULL,                 -- done, failed, refused, as in table url
    status   INTEGER NOT NULL,              -- HTTP's or Heritrix's code
    note     TEXT NOT NULL,                 -- annotations for crawl.log, separated by commas
    batch    INTEGER NOT NULL,              -- number of the WARC in the job's folder that contains the response
    position INTEGER NOT NULL,              -- byte of the response record in it
    size     INTEGER NOT NULL,              -- of the body as it was sent
    mime     TEXT NOT NULL,
    digest   TEXT NOT NULL,                 -- sha1 of the body as it was sent, base32
    arc      TEXT NOT NULL,                 -- first name of its ARC, for a response that is to be archived
    target   TEXT NOT NULL,                 -- of a redirect, with its fragment
    content  TEXT NOT NULL,                 -- what a version is told by: body, redirect, or gone; empty without any
    head     BLOB NOT NULL                  -- of a revisit with a response head of its own
);

CREATE TABLE IF NOT EXISTS capture (        -- the same in order of time: `id` is the position in it, from 1
    id       INTEGER PRIMARY KEY,
    source   INTEGER NOT NULL,
    name     TEXT NOT NULL,
    url      TEXT NOT NULL,
    domain   TEXT NOT NULL,
    time     INTEGER NOT NULL,
    state    TEXT NOT NULL,
    status   INTEGER NOT NULL,
    note     TEXT NOT NULL,
    batch    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    mime     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    arc      TEXT NOT NULL,
    target   TEXT NOT NULL,
    content  TEXT NOT NULL,
    head     BLOB NOT NULL,
    crawl    INTEGER NOT NULL DEFAULT 0,    -- number of its crawl, from 1
    cut      INTEGER NOT NULL DEFAULT 0,    -- number of the snapshot of its host in the crawl, from 1; 0: in none
    result   TEXT NOT NULL DEFAULT ''       -- as in table url
);

CREATE TABLE IF NOT EXISTS body (           -- where bodies are, for the revisit records that refer to them
    key      TEXT PRIMARY KEY,              -- a digest of the body (sha1:BASE32), or its URL and time in seconds
    batch    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    status   INTEGER NOT NULL,
    mime     TEXT NOT NULL,
    content  TEXT NOT NULL                  -- as in found
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS revisit (
    id       INTEGER PRIMARY KEY,
    source   INTEGER NOT NULL,
    ordinal  INTEGER NOT NULL,
    name     TEXT NOT NULL,
    url      TEXT NOT NULL,                 -- canonical
    time     INTEGER NOT NULL,              -- seconds since 1970
    fraction INTEGER NOT NULL,
    digest   TEXT NOT NULL,                 -- as in body; empty if the record contains none
    origin   TEXT NOT NULL,                 -- the URL that it refers to, canonical; its own if it names none
    seen     INTEGER NOT NULL,              -- the time that it refers to; 0 if it names none
    head     BLOB NOT NULL                  -- of the response, as received
);

CREATE TABLE IF NOT EXISTS part (           -- what a browser showed of pages
    id       INTEGER PRIMARY KEY,
    source   INTEGER NOT NULL,              -- number of the file, and of the WARC in the job's folder with its bytes
    ordinal  INTEGER NOT NULL,
    name     TEXT NOT NULL,                 -- of its crawl, as in found
    url      TEXT NOT NULL,                 -- of its page, canonical
    time     INTEGER NOT NULL,              -- seconds since 1970
    kind     TEXT NOT NULL,                 -- text, picture, title
    rank     INTEGER NOT NULL,              -- of several of a kind, the lowest is kept
    origin   TEXT NOT NULL,                 -- what it was taken from: urn:text, pages.jsonl
    position INTEGER NOT NULL,              -- byte of its record in that WARC; -1 for a title
    digest   TEXT NOT NULL,                 -- sha1 of its bytes, base32
    title    TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS form (           -- the parts of a version: one of each kind
    url      TEXT NOT NULL,
    content  TEXT NOT NULL,                 -- as in found and capture
    kind     TEXT NOT NULL,
    part     INTEGER NOT NULL,
    PRIMARY KEY (url, content, kind)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS crawl (
    number   INTEGER PRIMARY KEY,           -- from 1, in order of time
    name     TEXT NOT NULL,                 -- of its captures
    first    INTEGER NOT NULL,              -- the time of its first capture, and of its last
    last     INTEGER NOT NULL,
    done     INTEGER NOT NULL DEFAULT 0     -- 1: it has its report
);

CREATE INDEX IF NOT EXISTS crawl_of_name ON crawl (name, first);

CREATE TABLE IF NOT EXISTS cut (            -- the snapshots of a host in a crawl
    crawl    INTEGER NOT NULL,
    domain   TEXT NOT NULL,
    number   INTEGER NOT NULL,              -- from 1
    begin    INTEGER NOT NULL,              -- the first capture in it
    time     INTEGER NOT NULL,              -- the time of its first capture with a content
    is_last  INTEGER NOT NULL,              -- 1: the crawl has no further one of the host
    outcome  TEXT NOT NULL DEFAULT '',      -- JSON, once it is published or has nothing to be published
    PRIMARY KEY (crawl, domain, number)
) WITHOUT ROWID;

COMMIT;
