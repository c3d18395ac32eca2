-- From version 4: no page was shown by a browser.
BEGIN IMMEDIATE;
CREATE TABLE view (                         -- pages that a browser shows, or showed
    id           INTEGER PRIMARY KEY REFERENCES url,
    state        TEXT NOT NULL,             -- waiting, showing, done, failed
    tries        INTEGER NOT NULL DEFAULT 0,   -- how often the browser ended with it
    batch        INTEGER NOT NULL DEFAULT 0,   -- number of the WARC with what it asked for, and what it showed
    words        TEXT NOT NULL DEFAULT '',  -- what was cut or not done, separated by commas
    title        TEXT NOT NULL DEFAULT '',
    shown        TEXT NOT NULL DEFAULT '',  -- when, in UTC
    html_at      INTEGER NOT NULL DEFAULT -1,  -- byte of the part in that WARC; -1: there is none
    html_size    INTEGER NOT NULL DEFAULT 0,
    text_at      INTEGER NOT NULL DEFAULT -1,
    text_size    INTEGER NOT NULL DEFAULT 0,
    picture_at   INTEGER NOT NULL DEFAULT -1,
    picture_size INTEGER NOT NULL DEFAULT 0,
    requests     INTEGER NOT NULL DEFAULT 0,   -- what its scripts asked for, of that what was refused, what did not come
    refused      INTEGER NOT NULL DEFAULT 0,
    missed       INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX view_open ON view (state, id) WHERE state IN ('waiting', 'showing');
PRAGMA user_version = 5;
COMMIT;
