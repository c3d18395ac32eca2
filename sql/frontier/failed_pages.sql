-- Pages that did not come, in the order in which the crawl met them: the first ones.
SELECT url, status, note
  FROM url
 WHERE kind NOT IN ('robots', 'sitemap') AND embedded = 0
   AND (state = 'failed' OR state = 'done' AND status >= 400 AND arc = '')
 ORDER BY id
 LIMIT :most;
