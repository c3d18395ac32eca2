-- The ARCs of documents that the crawl knows by sitemaps alone: no page links to a URL of theirs.
SELECT arc FROM url AS listed
 WHERE domain = :domain AND arc <> '' AND kind = 'listed' AND result IN ('added', 'changed', 'unchanged')
   AND NOT EXISTS (SELECT 1 FROM url WHERE url.domain = listed.domain AND url.arc = listed.arc AND url.arc <> ''
                      AND url.kind <> 'listed' AND url.result IN ('added', 'changed', 'unchanged'));
