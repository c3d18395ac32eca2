-- Backwards: a page of the redirects of URLs whose keys are :low or more and :surt or less, by key and time, before the row
-- that the other values name.
SELECT redirect.url, redirect.path, redirect.surt, redirect.seq_from, redirect.seq_until, redirect.stored,
       redirect.captureTime, redirect.status, '', '', '', '', 0, x'', redirect.target, coalesce(snapshot.publication, ''),
       0
  FROM redirect
  LEFT JOIN snapshot ON snapshot.domain = redirect.domain AND snapshot.seq = redirect.stored
 WHERE redirect.surt <= :surt AND redirect.surt >= :low
   AND (redirect.surt, redirect.path, redirect.url, redirect.seq_from) < (:surt, :path, :url, :first)
 ORDER BY redirect.surt DESC, redirect.path DESC, redirect.url DESC, redirect.seq_from DESC
 LIMIT :limit;
