-- The ids of those of :values (a JSON array) that are known.
SELECT text, id FROM text WHERE text IN (SELECT value FROM json_each(:values));
