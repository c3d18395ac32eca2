SELECT snapshot.commitTag AS commitTag, redirect.url AS url, redirect.path AS path, redirect.surt AS surt,
       redirect.status AS status, redirect.target AS target, redirect.captureTime AS captureTime, stored.commitTag AS stored
  FROM redirect
  JOIN snapshot ON snapshot.domain = redirect.domain
               AND redirect.seq_from <= snapshot.seq AND redirect.seq_until > snapshot.seq
  JOIN snapshot AS stored ON stored.domain = redirect.domain AND stored.seq = redirect.stored
 ORDER BY snapshot.commitTag, redirect.url;
