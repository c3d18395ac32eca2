-- The page that named each URL, and the kind of what it named: for the target of redirects, the page before the first.
WITH RECURSIVE trail (id, at, steps) AS (
    SELECT id, id, 0 FROM url WHERE id IN (SELECT value FROM json_each(:ids))
     UNION ALL
    SELECT trail.id, url.found_on, steps + 1 FROM trail JOIN url ON url.id = trail.at
     WHERE url.kind = 'redirect' AND url.found_on IS NOT NULL AND steps < :longest
)
SELECT trail.id, page.url FROM trail
  JOIN url AS named ON named.id = trail.at AND named.kind IN ('link', 'requisite')
  JOIN url AS page ON page.id = named.found_on;
