-- URLs that a crawl before this job did not get, and that it asks for again: those with the fact `ASKED`.
SELECT * FROM url
 WHERE id > :after AND EXISTS (SELECT 1 FROM job WHERE job.key = 'asked:' || url.url)
 ORDER BY id LIMIT :most;
