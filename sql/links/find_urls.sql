-- The ids of those of :values (a JSON array) that are known.
SELECT url, id FROM url WHERE url IN (SELECT value FROM json_each(:values));
