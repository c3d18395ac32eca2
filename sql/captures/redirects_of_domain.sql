-- A page of the redirects of :domain, by URL and time, behind the row that the other values name. The first column is the
-- number that the lists of crawls have the URL by; 0: none met it. captured as in versions_of_domain.sql.
SELECT coalesce(met_redirect.id, 0), redirect.path, redirect.url, redirect.seq_from, redirect.seq_until, redirect.stored,
       CAST(strftime('%s', redirect.captureTime) AS INTEGER) - 3600 AS captured, redirect.status, '', '', '', '', 0, '',
       redirect.target, 0
  FROM redirect
  LEFT JOIN met_redirect ON met_redirect.url = redirect.url
 WHERE redirect.domain = (SELECT id FROM domain WHERE name = :domain)
   AND (redirect.url, redirect.seq_from) > (:url, :first)
 ORDER BY redirect.url, redirect.seq_from
 LIMIT :limit;
