-- The ids of the known URLs in :values (a JSON array).
SELECT url, id FROM url WHERE url IN (SELECT value FROM json_each(:values));
