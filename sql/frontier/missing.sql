-- What is not in the archive though a page needs it, and pages that did not come: by host, word and HTTP status.
-- A resource that a setting refuses is missing from its page; a page that one refuses was not wanted, but for one that
-- is larger than wanted, as only its server said.
SELECT domain, embedded > 0 AS is_resource, state = 'failed' AS has_failed, status, note, count(*) AS urls
  FROM url
 WHERE kind NOT IN ('robots', 'sitemap')
   AND (state = 'failed' OR state = 'done' AND status >= 400 AND arc = '' OR state = 'refused' AND embedded > 0
        OR state = 'refused' AND note = 'too-big' OR result = 'undecodable')
 GROUP BY domain, is_resource, has_failed, status, note;
