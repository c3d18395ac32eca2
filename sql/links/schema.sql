-- links.db: the links of every version of every HTML page (seed 4). Derived: `webarc-agent recover` rebuilds it from
-- git. Links belong to a body, the bytes of a page under its URL. A version gives the snapshots in which a page had that
-- body. So an unchanged page costs no row, and a changed page costs its own rows. URLs and references (kind, target,
-- text and window of a link) are stored once: menus repeat them on every page.

PRAGMA page_size = 8192;

BEGIN IMMEDIATE;

CREATE TABLE domain (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE               -- host[:port], also of sites that are not archived
);

CREATE TABLE snapshot (
    domain    INTEGER NOT NULL REFERENCES domain,
    seq       INTEGER NOT NULL,             -- crawlTime in seconds since 1970
    crawlTime TEXT NOT NULL,                -- yyyy-mm-ddThh:mm:ss, CET
    commitTag TEXT NOT NULL UNIQUE,
    PRIMARY KEY (domain, seq)
) WITHOUT ROWID;

CREATE TABLE url (
    id     INTEGER PRIMARY KEY,
    url    TEXT NOT NULL UNIQUE,            -- canonical; or mailto:<address>
    domain INTEGER REFERENCES domain        -- NULL: a mail address
);

CREATE TABLE page (
    id     INTEGER PRIMARY KEY,
    domain INTEGER NOT NULL REFERENCES domain,
    path   TEXT NOT NULL UNIQUE             -- of its ARC: /<domain>/…
);

CREATE TABLE body (
    id   INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page,
    url  INTEGER NOT NULL REFERENCES url,   -- the base of its relative links
    blob BLOB NOT NULL,                     -- git's object id of the bytes; behind it that of the DOM, if there is one
    UNIQUE (page, blob, url)
);

CREATE INDEX body_by_url ON body (url);

CREATE TABLE version (
    page      INTEGER NOT NULL REFERENCES page,
    domain    INTEGER NOT NULL REFERENCES domain,
    seq_from  INTEGER NOT NULL,             -- the first snapshot that contains it
    seq_until INTEGER NOT NULL,             -- the first that no longer contains it; 9223372036854775807: current
    body      INTEGER NOT NULL REFERENCES body,
    resource  INTEGER NOT NULL,             -- 1: only pages of other hosts needed the page, such as a frame
    PRIMARY KEY (page, seq_from)
) WITHOUT ROWID;

CREATE INDEX version_by_body ON version (body, seq_until, seq_from, resource);
CREATE INDEX version_by_domain ON version (domain, seq_until, seq_from, body, resource);

CREATE TABLE reference (                    -- the content of a link, independent of its page
    id     INTEGER PRIMARY KEY,
    kind   INTEGER NOT NULL,                -- 1 http, 2 mail, 3 image
    target INTEGER NOT NULL REFERENCES url,
    text   TEXT NOT NULL,                   -- between <a> and </a>, or in alt; original spelling, white space folded
    window TEXT NOT NULL,                   -- the name of the window that it opens in: HTML's target; empty: its own
    UNIQUE (target, kind, text, window)
);

-- The words of each reference's text (rowid is its id), case and accents folded. A full-text index appends and merges;
-- each page would change pages all over a table of words and references. The tokenizer does not fold: the words are
-- given folded, separated by blanks.
CREATE VIRTUAL TABLE naming USING fts5 (words, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
CREATE VIRTUAL TABLE word USING fts5vocab (naming, row);
CREATE VIRTUAL TABLE named USING fts5vocab (naming, instance);

CREATE TABLE link (
    body      INTEGER NOT NULL REFERENCES body,
    reference INTEGER NOT NULL REFERENCES reference,
    times     INTEGER NOT NULL,             -- the number of occurrences on the page
    PRIMARY KEY (body, reference)
) WITHOUT ROWID;

CREATE INDEX link_by_reference ON link (reference, body, times);

-- Deleting a row deletes the rows that only it referred to. The writer defines words_of: the words given to naming.

CREATE TRIGGER body_goes AFTER DELETE ON body BEGIN
    DELETE FROM link WHERE body = OLD.id;
    DELETE FROM url WHERE id = OLD.url
       AND NOT EXISTS (SELECT 1 FROM body WHERE url = OLD.url)
       AND NOT EXISTS (SELECT 1 FROM reference WHERE target = OLD.url);
END;

CREATE TRIGGER link_goes AFTER DELETE ON link BEGIN
    DELETE FROM reference WHERE id = OLD.reference AND NOT EXISTS (SELECT 1 FROM link WHERE reference = OLD.reference);
END;

CREATE TRIGGER reference_goes AFTER DELETE ON reference BEGIN
    DELETE FROM url WHERE id = OLD.target
       AND NOT EXISTS (SELECT 1 FROM reference WHERE target = OLD.target)
       AND NOT EXISTS (SELECT 1 FROM body WHERE url = OLD.target);
    INSERT INTO naming (naming, rowid, words) VALUES ('delete', OLD.id, words_of(OLD.text));
END;

-- One row for each link of each page in each snapshot; readable with any SQLite tool.
CREATE VIEW links AS
SELECT source.url         AS page,
       page.path          AS path,
       domain.name        AS domain,
       CASE reference.kind WHEN 1 THEN 'http' WHEN 2 THEN 'mail' ELSE 'image' END AS kind,
       target.url         AS target,
       reference.text     AS text,
       link.times         AS times,
       snapshot.crawlTime AS crawlTime,
       snapshot.commitTag AS commitTag,
       reference.window   AS window,
       iif(version.resource, 'resource', 'page') AS role
  FROM snapshot
  JOIN domain        ON domain.id = snapshot.domain
  JOIN version       ON version.domain = snapshot.domain
                    AND version.seq_from <= snapshot.seq
                    AND version.seq_until > snapshot.seq
  JOIN body          ON body.id = version.body
  JOIN page          ON page.id = body.page
  JOIN url AS source ON source.id = body.url
  JOIN link          ON link.body = body.id
  JOIN reference     ON reference.id = link.reference
  JOIN url AS target ON target.id = reference.target;

-- Seed 4's table: the number of times that a page names a target with a word. Fast if the word is given.
CREATE VIEW link_words AS
SELECT named.term         AS word,
       source.url         AS page,
       CASE reference.kind WHEN 1 THEN 'http' WHEN 2 THEN 'mail' ELSE 'image' END AS kind,
       target.url         AS target,
       sum(link.times)    AS times,
       snapshot.commitTag AS commitTag
  FROM named
  JOIN reference     ON reference.id = named.doc
  JOIN url AS target ON target.id = reference.target
  JOIN link          ON link.reference = reference.id
  JOIN body          ON body.id = link.body
  JOIN url AS source ON source.id = body.url
  JOIN version       ON version.body = body.id
  JOIN snapshot      ON snapshot.domain = version.domain
                    AND snapshot.seq >= version.seq_from
                    AND snapshot.seq < version.seq_until
 GROUP BY named.term, source.url, reference.kind, target.url, snapshot.commitTag;

PRAGMA user_version = 4;

COMMIT;
