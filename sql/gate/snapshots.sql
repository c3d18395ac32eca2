-- The snapshots of which a reader may see something; a table of the connection alone.
CREATE TEMP TABLE reader_snapshot (
    domain      INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    publication TEXT NOT NULL,
    seen        TEXT NOT NULL,              -- the tree that its publication saw; empty: all
    closed      INTEGER NOT NULL,           -- 1: only what a rule allows to the reader by name
    PRIMARY KEY (domain, seq)
) WITHOUT ROWID;
