-- The ids of those of :values (a JSON array) that are known.
SELECT word, id FROM word WHERE word IN (SELECT value FROM json_each(:values));
