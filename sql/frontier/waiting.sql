-- Domains with waiting URLs, and when the first of them may be fetched. Walks the index from domain to domain, so that
-- the cost does not depend on the number of waiting URLs.
WITH RECURSIVE waiting (domain) AS (
    SELECT min(domain) FROM url WHERE state = 'waiting'
    UNION ALL
    SELECT (SELECT min(url.domain) FROM url WHERE url.state = 'waiting' AND url.domain > waiting.domain)
      FROM waiting WHERE waiting.domain IS NOT NULL
)
SELECT domain,
       (SELECT min(not_before) FROM url WHERE url.state = 'waiting' AND url.domain = waiting.domain) AS ready
  FROM waiting WHERE domain IS NOT NULL;
