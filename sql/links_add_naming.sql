INSERT INTO naming (word, text) VALUES (?, ?);
