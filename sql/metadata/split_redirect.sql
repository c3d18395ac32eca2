-- As split_version.sql, for the redirect of a URL.
INSERT INTO redirect (domain, url, path, surt, seq_from, seq_until, stored, status, target, captureTime)
SELECT domain, url, path, surt, :next, seq_until, stored, status, target, captureTime
  FROM redirect
 WHERE domain = :domain AND url = :url AND seq_from < :seq AND seq_until > :next;
