-- URLs of a domain that the crawl saw and has no page of, except those that are gone (404, 410) and redirects.
-- The statuses of redirects: webarcfs/archive/model/url_lists.py.
SELECT url, status, result FROM url
 WHERE domain = :domain AND kind <> 'robots' AND (arc = '' OR result IN ('filtered', 'undecodable', 'duplicate'))
   AND status NOT IN (404, 410)
   AND NOT (state = 'done' AND status IN (301, 302, 303, 307, 308));
