-- frontier.db of a job: every URL that the crawl has seen, with its state and outcome. Together with the WARCs beside
-- it, this is sufficient to resume after a crash.
BEGIN IMMEDIATE;

CREATE TABLE job (                          -- facts of the job (agent/crawl/frontier.py); values are JSON
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE url (
    id         INTEGER PRIMARY KEY,
    url        TEXT NOT NULL UNIQUE,        -- canonical
    domain     TEXT NOT NULL,               -- host[:port]
    kind       TEXT NOT NULL,               -- seed, link, redirect, requisite, robots, sitemap, listed, feed
    depth      INTEGER NOT NULL,            -- links from a start URL, by the shortest path known (/Cr-1.1/)
    hops       TEXT NOT NULL,               -- that path in Heritrix letters: L link, E requisite, R redirect, P robots,
                                            -- M sitemap
    found_on   INTEGER REFERENCES url,
    state      TEXT NOT NULL,               -- waiting, fetching, done (whole), failed, refused (scope, robots, limits)
    tries      INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,     -- seconds since 1970: not to be tried again earlier
    status     INTEGER NOT NULL DEFAULT 0,  -- HTTP's or Heritrix's code
    note       TEXT NOT NULL DEFAULT '',    -- annotations for crawl.log, separated by commas
    batch      INTEGER NOT NULL DEFAULT 0,  -- number of the WARC that contains the response
    position   INTEGER NOT NULL DEFAULT 0,  -- byte of the response record in it
    size       INTEGER NOT NULL DEFAULT 0,  -- of the body as it was sent
    mime       TEXT NOT NULL DEFAULT '',
    digest     TEXT NOT NULL DEFAULT '',    -- sha1 of the body as it was sent, base32
    captured   TEXT NOT NULL DEFAULT '',    -- yyyy-mm-ddThh:mm:ss, CET
    arc        TEXT NOT NULL DEFAULT '',    -- the ARC inside the domain, of a response that is to be archived
    target     TEXT NOT NULL DEFAULT '',    -- the target of a redirect, with its fragment; while it waits or is fetched:
                                            -- its own URL with the session id that a server asks for, if any
    expanded   INTEGER NOT NULL DEFAULT -1, -- the depth at which its links were added; -1: not added
    nested     INTEGER NOT NULL DEFAULT 0,  -- 1: the ARC's folder contained folders, so that other ARCs may be inside
    links      INTEGER NOT NULL DEFAULT -1, -- number of links found in it; -1: it was not read for links
    inner      INTEGER NOT NULL DEFAULT 0,  -- links from where the crawl came to its server, on the path of `hops`
    embedded   INTEGER NOT NULL DEFAULT 0,  -- resources in a row since the last link, by the path with the fewest; 0: a page
    page       INTEGER NOT NULL DEFAULT 0,  -- the page that needed it first, of a resource
    named      TEXT NOT NULL DEFAULT '',    -- sheet, quirks-sheet, manifest: as what a page names it; where its type does not say
                                            -- so, it is read as that
    result     TEXT NOT NULL DEFAULT ''     -- added, changed, unchanged, filtered, duplicate, undecodable
);

CREATE INDEX url_waiting ON url (domain, depth, id) WHERE state = 'waiting';
CREATE INDEX url_ready ON url (domain, not_before) WHERE state = 'waiting';
CREATE INDEX url_nearer ON url (id) WHERE state = 'done' AND expanded > depth;
CREATE INDEX url_fetching ON url (batch) WHERE state = 'fetching';
CREATE INDEX url_of_arc ON url (domain, arc) WHERE arc <> '';
CREATE INDEX url_redirect ON url (domain) WHERE target <> '';
CREATE INDEX url_of_batch ON url (batch, position);
CREATE INDEX url_of_page ON url (page) WHERE page > 0;

CREATE TABLE robots (                       -- responses to requests for robots.txt, each valid for a day
    url     TEXT PRIMARY KEY,
    status  INTEGER NOT NULL,               -- HTTP's or Heritrix's code
    body    BLOB NOT NULL,                  -- the rules; the target, for a redirect
    fetched REAL NOT NULL                   -- seconds since 1970
) WITHOUT ROWID;

CREATE TABLE batch (                        -- a run of wget: NNNNNN.list, .log, .warc
    id     INTEGER PRIMARY KEY,
    domain TEXT NOT NULL,
    state  TEXT NOT NULL                    -- running, read
);

-- ARCs for which the crawl fetched no page, and which stay: their pages failed or were refused.
CREATE TABLE held (
    domain TEXT NOT NULL,
    arc    TEXT NOT NULL,
    PRIMARY KEY (domain, arc)
) WITHOUT ROWID;

CREATE TABLE query (                        -- the number of accepted URLs that differ only in their queries
    path TEXT PRIMARY KEY,                  -- a URL without its query
    urls INTEGER NOT NULL
) WITHOUT ROWID;

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

CREATE TRIGGER query_found AFTER INSERT ON url WHEN new.state <> 'refused' AND instr(new.url, '?') BEGIN
    INSERT INTO query (path, urls) VALUES (substr(new.url, 1, instr(new.url, '?') - 1), 1)
    ON CONFLICT (path) DO UPDATE SET urls = urls + 1;
END;

CREATE TRIGGER query_admitted AFTER UPDATE OF state ON url
WHEN old.state = 'refused' AND new.state <> 'refused' AND instr(new.url, '?') BEGIN
    INSERT INTO query (path, urls) VALUES (substr(new.url, 1, instr(new.url, '?') - 1), 1)
    ON CONFLICT (path) DO UPDATE SET urls = urls + 1;
END;

PRAGMA user_version = 5;

COMMIT;
