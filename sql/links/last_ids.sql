-- The highest ids: the writer numbers what it adds.
SELECT (SELECT coalesce(max(id), 0) FROM url)       AS url,
       (SELECT coalesce(max(id), 0) FROM reference) AS reference;
