INSERT INTO word (id, word) VALUES (?, ?);
