-- Pages that did not come, or resources that pages need: the first ones in the order in which the crawl met them. What a
-- server does not have comes last: nothing is to be done about it.
SELECT url, status, note
  FROM url
 WHERE kind NOT IN ('robots', 'sitemap') AND (embedded > 0) = :is_resource
   AND (state = 'failed' OR state = 'done' AND status >= 400 AND arc = ''
        OR state = 'refused' AND note = 'too-big')
 ORDER BY status IN (404, 410), id
 LIMIT :most;
