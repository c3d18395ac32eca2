-- URLs of a domain that the crawl saw and has no page of, except those that are gone (404, 410).
SELECT url, status, result FROM url
 WHERE domain = :domain AND kind <> 'robots' AND (arc = '' OR result IN ('filtered', 'undecodable', 'duplicate'))
   AND status NOT IN (404, 410);
