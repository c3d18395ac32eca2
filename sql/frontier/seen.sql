-- The ARCs of a domain that the crawl saw, in the order of a tree walk: children directly after their folder, since
-- U+0001 sorts before every character of a name.
SELECT arc, max(nested) AS nested
  FROM (SELECT arc, nested FROM url
         WHERE domain = :domain AND arc <> '' AND result IN ('added', 'changed', 'unchanged')
         UNION ALL
        SELECT arc, 1 FROM held WHERE domain = :domain)
 GROUP BY arc
 ORDER BY replace(arc, '/', char(1));
