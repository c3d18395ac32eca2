-- From version 3: how many resources in a row led to a URL is read off its path, behind the last link.
BEGIN IMMEDIATE;
ALTER TABLE url ADD COLUMN embedded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE url ADD COLUMN page INTEGER NOT NULL DEFAULT 0;
ALTER TABLE url ADD COLUMN named TEXT NOT NULL DEFAULT '';
CREATE INDEX url_of_page ON url (page) WHERE page > 0;
UPDATE url SET embedded = length(replace(substr(hops, length(rtrim(hops, 'ER')) + 1), 'R', '')) WHERE kind <> 'robots';
PRAGMA user_version = 4;
COMMIT;
