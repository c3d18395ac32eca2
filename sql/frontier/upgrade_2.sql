-- From version 2: the columns come last, so statements name what they write.
BEGIN IMMEDIATE;
ALTER TABLE url ADD COLUMN links INTEGER NOT NULL DEFAULT -1;
ALTER TABLE url ADD COLUMN inner INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 3;
COMMIT;
