-- watch/<publication>.db: the items of the feed that a publication watches. Derived but for the tries: without the file,
-- what the publication has captured is read from webarc.db.
BEGIN IMMEDIATE;

CREATE TABLE item (
    url      TEXT PRIMARY KEY,              -- canonical, without session ids
    captured INTEGER NOT NULL,              -- 1: a crawl of the publication published it
    tries    INTEGER NOT NULL,              -- the crawls that asked for it in vain
    job      TEXT NOT NULL                  -- the last crawl that asked for it: each counts once
) WITHOUT ROWID;

CREATE INDEX item_waiting ON item (tries, url) WHERE captured = 0;

PRAGMA user_version = 1;

COMMIT;
