-- catalogue.db: what decisions and lists need of the records in catalogue.git. Derived: who finds it behind the commit
-- that it names brings it in step.

BEGIN IMMEDIATE;

CREATE TABLE state (                        -- one row
    oid TEXT NOT NULL                       -- the commit of catalogue.git that it is made from
);

CREATE TABLE record (
    id          TEXT PRIMARY KEY,
    number      INTEGER NOT NULL,
    publication TEXT NOT NULL,
    state       TEXT NOT NULL,
    closedFor   TEXT NOT NULL               -- a span of time from the capture, or empty
) WITHOUT ROWID;

CREATE INDEX record_by_number ON record (number);

CREATE TABLE part (                         -- what a capture published on one domain
    domain TEXT NOT NULL,
    seq    INTEGER NOT NULL,                -- its commitTag's time in seconds since 1970
    record TEXT NOT NULL,
    seen   TEXT NOT NULL,                   -- the tree that its publication saw; empty: all; own: what its crawls stored
    held   INTEGER NOT NULL,                -- 1: it was not to be shown at once
    PRIMARY KEY (domain, seq, record)
) WITHOUT ROWID;

CREATE INDEX part_of_record ON part (record);

PRAGMA user_version = 1;

COMMIT;
