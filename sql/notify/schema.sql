-- notify.db: what people were told, and the notifications that wait. Not derived, and in no backup: without the file all
-- that is amiss is told once more.
BEGIN IMMEDIATE;

CREATE TABLE fact (
    name  TEXT PRIMARY KEY,       -- number: conditions so far; digest: time of the last one
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE condition (
    kind    TEXT NOT NULL,        -- a word of [notify] events
    subject TEXT NOT NULL,        -- a publication, a kind of job, a record; empty: the archive
    since   TEXT NOT NULL,        -- these times as `status` has them
    told    TEXT NOT NULL,        -- empty: nobody was told yet
    mark    TEXT NOT NULL,        -- no other condition ever has it
    text    TEXT NOT NULL,
    job     TEXT NOT NULL,
    record  TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

CREATE TABLE crawl (
    subject  TEXT PRIMARY KEY,    -- a publication, or a kind of job beside the schedule
    report   TEXT NOT NULL,       -- the newest report that was looked at; empty: none yet
    captured TEXT NOT NULL        -- when it captured something last, or was seen first
) WITHOUT ROWID;

CREATE TABLE notification (
    number  INTEGER PRIMARY KEY,  -- their order
    id      TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL         -- JSON
);

CREATE TABLE delivery (
    notification INTEGER NOT NULL REFERENCES notification (number),
    target       TEXT NOT NULL,   -- mail, command, or a URL as its host and digest
    state        TEXT NOT NULL,   -- waiting, given-up
    tries        INTEGER NOT NULL,
    due          INTEGER NOT NULL,-- when it is tried next, or was given up, in seconds since 1970
    answer       TEXT NOT NULL,   -- what came of the last try
    PRIMARY KEY (notification, target)
) WITHOUT ROWID;

CREATE INDEX delivery_due ON delivery (target, state, due, notification);

PRAGMA user_version = 1;

COMMIT;
