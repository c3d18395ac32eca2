INSERT INTO naming (rowid, words) VALUES (?, ?);
