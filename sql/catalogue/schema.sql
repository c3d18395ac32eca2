-- catalogue.db: what decisions and lists need of the records in catalogue.git. Derived: who finds it behind the commit
-- that it names brings it in step. Two processes may make it at once: the second one finds all tables there.

BEGIN IMMEDIATE;

CREATE TABLE IF NOT EXISTS state (                        -- one row
    oid TEXT NOT NULL                       -- the commit of catalogue.git that it is made from
);

CREATE TABLE IF NOT EXISTS record (
    id          TEXT PRIMARY KEY,
    number      INTEGER NOT NULL,
    publication TEXT NOT NULL,
    state       TEXT NOT NULL,
    closedFor   TEXT NOT NULL,              -- a span of time from the capture, or empty
    date        INTEGER NOT NULL,           -- its earliest commitTag, or its begin, in seconds since 1970
    title       TEXT NOT NULL,
    titled      INTEGER NOT NULL,           -- 1: a person gave it its title
    domain      TEXT NOT NULL,
    complete    INTEGER,                    -- NULL: an import that does not say it
    parts       INTEGER NOT NULL,           -- the number of its domains
    occasion    INTEGER NOT NULL,           -- 1: not a regular capture
    reason      TEXT NOT NULL,              -- the occasion
    release     TEXT NOT NULL,
    documents   INTEGER,                    -- NULL: not counted
    bytes       INTEGER,
    resources   INTEGER NOT NULL,           -- bytes of hosts without pages, which the two above do not count
    waits       INTEGER NOT NULL,           -- 1: people have to decide about its release
    passed      INTEGER NOT NULL,           -- 0: its last check found something
    progress    TEXT NOT NULL,              -- the steps that are done, and what decisions need to know; JSON
    extensions  INTEGER NOT NULL,           -- 1: its files were counted by extension
    words       TEXT NOT NULL,              -- what a search in the catalogue looks at, case folded
    held        INTEGER NOT NULL,           -- 1: a part of it was not to be shown at once
    shown       INTEGER NOT NULL,           -- 1: lists of the reading room have it, open or closed until a date
    closedUntil INTEGER NOT NULL,           -- the end of its closure in seconds since 1970; 0: it has none
    signature   TEXT NOT NULL,
    provenance  TEXT NOT NULL,
    project     TEXT NOT NULL,
    host        TEXT NOT NULL,              -- its domain as a list of the reading room names it
    year        TEXT NOT NULL,              -- of its date in CET
    released    INTEGER NOT NULL,           -- when it was released, in seconds since 1970
    releases    INTEGER NOT NULL,           -- how often it was released
    updated     INTEGER NOT NULL,           -- when what the feed says of it changed last
    gone        INTEGER NOT NULL,           -- 1: readers saw it once, and may see it no more
    readerWords TEXT NOT NULL               -- what a search of readers in the lists looks at, case folded
);

CREATE INDEX IF NOT EXISTS record_by_number ON record (number);
CREATE INDEX IF NOT EXISTS record_of_publication ON record (publication, date);
-- What lists sort by and choose by: they count without reading the records themselves.
CREATE INDEX IF NOT EXISTS record_listed ON record (date, number, publication, state, waits, complete, passed);
CREATE INDEX IF NOT EXISTS record_in_state ON record (state, date);
CREATE INDEX IF NOT EXISTS record_waits ON record (waits, date);
CREATE INDEX IF NOT EXISTS record_by_extension ON record (publication, id) WHERE extensions = 1;
-- The lists of the reading room: each is counted and cut from an index, and only the rows of a page are read.
CREATE INDEX IF NOT EXISTS record_shown ON record (date, number, signature, publication, project, occasion, year) WHERE shown = 1;
CREATE INDEX IF NOT EXISTS record_shown_of_publication ON record (publication, date, number, closedUntil, year) WHERE shown = 1;
CREATE INDEX IF NOT EXISTS record_released ON record (released, number, closedUntil) WHERE shown = 1;
CREATE INDEX IF NOT EXISTS record_gone ON record (updated) WHERE gone = 1;
CREATE INDEX IF NOT EXISTS record_grouped ON record (signature, publication, project, occasion, year, date) WHERE shown = 1;

CREATE TABLE IF NOT EXISTS part (                         -- what a capture published on one domain
    domain TEXT NOT NULL,
    seq    INTEGER NOT NULL,                -- its commitTag's time in seconds since 1970
    record TEXT NOT NULL,
    seen   TEXT NOT NULL,                   -- the tree that its publication saw; empty: all; own: what its crawls stored
    held   INTEGER NOT NULL,                -- 1: it was not to be shown at once
    position INTEGER NOT NULL,              -- among the parts of the record, from 0
    resource INTEGER NOT NULL,              -- 1: it has no page of the domain, only what pages of others need
    PRIMARY KEY (domain, seq, record)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS part_of_record ON part (record);

PRAGMA user_version = 7;

COMMIT;
