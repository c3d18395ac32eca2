-- The highest ids: the writer assigns the next ones.
SELECT (SELECT coalesce(max(id), 0) FROM url)       AS url,
       (SELECT coalesce(max(id), 0) FROM reference) AS reference;
