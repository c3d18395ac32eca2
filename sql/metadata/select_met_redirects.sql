-- The numbers of URLs of redirects in the table met, in the order of :urls.
SELECT (SELECT id FROM met_redirect WHERE url = wanted.value) FROM json_each(:urls) AS wanted ORDER BY wanted.key;
