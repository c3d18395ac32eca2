-- URLs of a domain that the crawl saw and has no page of, but for those that are gone.
SELECT url, status, result FROM url
 WHERE domain = :domain AND kind <> 'robots' AND (arc = '' OR result IN ('filtered', 'undecodable', 'duplicate'))
   AND status NOT IN (404, 410);
