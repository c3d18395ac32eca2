-- The values to which a question is narrowed: a row.
CREATE TEMP TABLE wanted (url TEXT, path TEXT, domain TEXT, commitTag TEXT, publication TEXT);
