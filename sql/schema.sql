-- webarc.db: what is in the archive, in every snapshot (/Db-1/, /Db-3/). Derived: `webarc-agent recover` makes it anew
-- from git (/Db-6/). A version is valid from one snapshot until another replaces or removes it, so that a document that
-- did not change costs no row.

BEGIN IMMEDIATE;

CREATE TABLE domain (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE               -- host[:port]
);

CREATE TABLE snapshot (
    domain      INTEGER NOT NULL REFERENCES domain,
    seq         INTEGER NOT NULL,           -- crawlTime in seconds since 1970: the order of a domain's snapshots
    crawlTime   TEXT NOT NULL,              -- yyyy-mm-ddThh:mm:ss, CET
    commitTag   TEXT NOT NULL UNIQUE,       -- <crawlTime>@<domain>
    sequence    INTEGER NOT NULL UNIQUE,    -- the commit's trailer Sequence: the order of the feed
    publication TEXT NOT NULL,              -- whose crawl made it
    complete    INTEGER NOT NULL,           -- 1: the crawl saw all that it set out to see
    PRIMARY KEY (domain, seq)
) WITHOUT ROWID;

CREATE INDEX snapshot_by_time ON snapshot (crawlTime, domain, seq);

CREATE TABLE document (
    id     INTEGER PRIMARY KEY,
    domain INTEGER NOT NULL REFERENCES domain,
    url    TEXT NOT NULL UNIQUE,
    path   TEXT NOT NULL                    -- of its ARC: /<domain>/…; http and https share one
);

CREATE INDEX document_by_domain ON document (domain, url);
CREATE INDEX document_by_path ON document (path);

CREATE TABLE version (
    document   INTEGER NOT NULL REFERENCES document,
    domain     INTEGER NOT NULL REFERENCES domain,
    seq_from   INTEGER NOT NULL,            -- the first snapshot that has it
    seq_until  INTEGER NOT NULL,            -- the first that no longer has it; 9223372036854775807 while it is current
    mimeType   TEXT NOT NULL,
    title      TEXT NOT NULL,
    createTime TEXT NOT NULL,
    PRIMARY KEY (document, seq_from)
) WITHOUT ROWID;

CREATE INDEX version_by_type ON version (domain, mimeType, seq_from, seq_until);
CREATE INDEX version_by_creation ON version (mimeType, createTime);

-- The specification's table (its section 2), a row per document and snapshot; commitTag and crawlTime are the
-- snapshot's. What users write WHERE and ORDER BY against (/Cl-6/).
CREATE VIEW metadata AS
SELECT document.url         AS url,
       version.mimeType     AS mimeType,
       version.title        AS title,
       document.path        AS path,
       domain.name          AS domain,
       snapshot.crawlTime   AS crawlTime,
       version.createTime   AS createTime,
       snapshot.commitTag   AS commitTag
  FROM snapshot
  JOIN domain   ON domain.id = snapshot.domain
  JOIN version  ON version.domain = snapshot.domain
               AND version.seq_from <= snapshot.seq
               AND version.seq_until > snapshot.seq
  JOIN document ON document.id = version.document;

PRAGMA user_version = 1;

COMMIT;
