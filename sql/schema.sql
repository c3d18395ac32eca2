-- webarc.db: the documents of the archive in every snapshot (/Db-1/, /Db-3/). Derived: `webarc-agent recover` rebuilds
-- it from git (/Db-6/). A version is valid from one snapshot until another replaces or removes it, so that an unchanged
-- document costs no row.

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
    publication TEXT NOT NULL,              -- the publication that was crawled
    complete    INTEGER NOT NULL,           -- 1: the crawl fetched all URLs in scope
    PRIMARY KEY (domain, seq)
) WITHOUT ROWID;

CREATE INDEX snapshot_by_time ON snapshot (crawlTime, domain, seq);
CREATE INDEX snapshot_of_domain ON snapshot (domain, crawlTime, seq);

CREATE TABLE document (
    id     INTEGER PRIMARY KEY,
    domain INTEGER NOT NULL REFERENCES domain,
    url    TEXT NOT NULL,
    path   TEXT NOT NULL,                   -- of its ARC: /<domain>/…; http and https share one, unless their bytes differ
    surt   TEXT NOT NULL,                   -- its URL as a key that sorts by host, from the top-level domain down
    UNIQUE (url, path)
);

CREATE INDEX document_by_domain ON document (domain, path);
CREATE INDEX document_by_path ON document (path);
CREATE INDEX document_by_surt ON document (surt, path);

CREATE TABLE version (
    document   INTEGER NOT NULL REFERENCES document,
    domain     INTEGER NOT NULL REFERENCES domain,
    seq_from   INTEGER NOT NULL,            -- the first snapshot that contains it
    seq_until  INTEGER NOT NULL,            -- the first that no longer contains it; 9223372036854775807: current
    stored     INTEGER NOT NULL,            -- seq of the snapshot whose crawl stored it; before seq_from where an older
                                            -- import was put in between
    mimeType   TEXT NOT NULL,
    title      TEXT NOT NULL,
    createTime TEXT NOT NULL,
    captureTime TEXT NOT NULL,              -- when the server answered; CET
    status     INTEGER NOT NULL,            -- HTTP's
    blob       BLOB NOT NULL,               -- git's id of the body, 20 bytes
    head       BLOB NOT NULL,               -- git's id of headers.http
    size       INTEGER NOT NULL,            -- bytes of the body
    digest     BLOB NOT NULL,               -- SHA-1 of the body, as others compare it: git's id is of more bytes
    resource   INTEGER NOT NULL,            -- 1: only pages of other hosts needed it
    certificate TEXT NOT NULL,              -- what was wrong with the server's, where it was not checked; else empty
    PRIMARY KEY (document, seq_from)
) WITHOUT ROWID;

CREATE INDEX version_by_type ON version (domain, mimeType, seq_from, seq_until);
CREATE INDEX version_by_creation ON version (mimeType, createTime);

CREATE TABLE redirect (                     -- a URL that led elsewhere, in the snapshots seq_from to seq_until
    domain      INTEGER NOT NULL REFERENCES domain,
    url         TEXT NOT NULL,
    path        TEXT NOT NULL,              -- of the ARC that the URL would have
    surt        TEXT NOT NULL,
    seq_from    INTEGER NOT NULL,
    seq_until   INTEGER NOT NULL,
    stored      INTEGER NOT NULL,           -- as in version
    status      INTEGER NOT NULL,
    target      TEXT NOT NULL,              -- with its fragment
    captureTime TEXT NOT NULL,              -- when the server first sent it; CET
    PRIMARY KEY (domain, url, seq_from)
) WITHOUT ROWID;

CREATE INDEX redirect_by_path ON redirect (path);
CREATE INDEX redirect_by_surt ON redirect (surt, url);

CREATE TABLE met_redirect (                 -- a URL whose redirect some crawl met unchanged
    id  INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE
);

-- What a crawl met unchanged, and when: a row for each crawl and block of 1,024 ids. An ARC has the lowest id of the
-- documents at its path, a redirect that of met_redirect.
CREATE TABLE met (
    domain INTEGER NOT NULL REFERENCES domain,
    kind   INTEGER NOT NULL,                -- 0: ARCs, 1: redirects
    block  INTEGER NOT NULL,                -- id / 1024
    seq    INTEGER NOT NULL,                -- the crawl's snapshot
    base   INTEGER NOT NULL,                -- the earliest time, in seconds since 1970
    times  BLOB NOT NULL,                   -- webarcfs/archive/model/url_lists.py packs them
    PRIMARY KEY (domain, kind, block, seq)
) WITHOUT ROWID;

-- The specification's table (its section 2) and four columns of ours, a row per document and snapshot; commitTag and crawlTime are the
-- snapshot's. Users' WHERE and ORDER BY refer to it (/Cl-6/).
--
-- The first table that is read decides between a millisecond and seconds. So the planner gets two facts that it cannot
-- know: most versions are valid in most snapshots (likelihood), and the size of each table and index (below).
CREATE VIEW metadata AS
SELECT document.url         AS url,
       version.mimeType     AS mimeType,
       version.title        AS title,
       document.path        AS path,
       domain.name          AS domain,
       snapshot.crawlTime   AS crawlTime,
       version.createTime   AS createTime,
       snapshot.commitTag   AS commitTag,
       version.captureTime  AS captureTime,
       version.status       AS status,
       iif(version.resource, 'resource', 'page') AS role,
       version.certificate  AS certificate
  FROM snapshot
  JOIN domain   ON domain.id = snapshot.domain
  JOIN version  ON version.domain = snapshot.domain
               AND likelihood(version.seq_from <= snapshot.seq, 0.9)
               AND likelihood(version.seq_until > snapshot.seq, 0.9)
  JOIN document ON document.id = version.document
               AND document.domain = snapshot.domain;

-- The figures that ANALYZE would find in an archive of 100 domains, 1,000,000 documents and 20 snapshots of each domain, 1 %
-- changed in each: rows, then rows for each value of the index's first column, of its first two, and so on. They are
-- fixed, so that a query has the same plan in every archive. A query with ORDER BY is then read in that order, starting
-- with the snapshots, and LIMIT ends it early.
ANALYZE;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('domain',   'sqlite_autoindex_domain_1',   '100 1'),
    ('snapshot', 'snapshot',                    '2000 20 1'),
    ('snapshot', 'sqlite_autoindex_snapshot_1', '2000 1'),
    ('snapshot', 'sqlite_autoindex_snapshot_2', '2000 1'),
    ('snapshot', 'snapshot_by_time',            '2000 2 1 1'),
    ('snapshot', 'snapshot_of_domain',          '2000 20 1 1'),
    ('document', 'sqlite_autoindex_document_1', '1000000 1 1'),
    ('document', 'document_by_domain',          '1000000 10000 1'),
    ('document', 'document_by_path',            '1000000 1'),
    ('document', 'document_by_surt',            '1000000 1 1'),
    ('version',  'version',                     '1200000 2 1'),
    ('version',  'version_by_type',             '1200000 12000 1000 100 100 1'),
    ('version',  'version_by_creation',         '1200000 100000 10 1 1'),
    ('redirect', 'redirect',                    '100000 1000 2 1'),
    ('redirect', 'redirect_by_path',            '100000 2 2 2 1'),
    ('redirect', 'redirect_by_surt',            '100000 2 2 2 1');

PRAGMA user_version = 8;

COMMIT;
