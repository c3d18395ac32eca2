-- The redirects in the newest state of a domain.
SELECT redirect.url AS url, redirect.status AS status, redirect.target AS target, redirect.captureTime AS captureTime
  FROM domain
  JOIN redirect ON redirect.domain = domain.id AND redirect.seq_until = 9223372036854775807
 WHERE domain.name = :name;
