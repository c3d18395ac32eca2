-- The redirects at :path, of both schemes, oldest first.
SELECT redirect.url, redirect.path, redirect.surt, redirect.seq_from, redirect.seq_until, redirect.stored,
       redirect.captureTime, redirect.status, '', '', '', '', 0, x'', redirect.target, coalesce(snapshot.publication, ''),
       0
  FROM redirect
  LEFT JOIN snapshot ON snapshot.domain = redirect.domain AND snapshot.seq = redirect.stored
 WHERE redirect.path = :path
 ORDER BY redirect.seq_from, redirect.url;
