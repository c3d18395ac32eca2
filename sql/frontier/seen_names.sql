-- The ARCs of a domain that the crawl saw, each once, in the order of an index: no sorting.
SELECT arc FROM url WHERE domain = :domain AND arc <> '' AND result IN ('added', 'changed', 'unchanged')
 UNION ALL
SELECT arc FROM held
 WHERE domain = :domain
   AND NOT EXISTS (SELECT 1 FROM url WHERE url.domain = held.domain AND url.arc = held.arc AND url.arc <> ''
                      AND url.result IN ('added', 'changed', 'unchanged'));
