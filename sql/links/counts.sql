-- The number of rows of each table that grows with links, and the number of words.
SELECT (SELECT count(*) FROM link) AS links, (SELECT count(*) FROM body) AS bodies,
       (SELECT count(*) FROM reference) AS refs, (SELECT count(*) FROM url) AS urls,
       (SELECT count(*) FROM word) AS words;
