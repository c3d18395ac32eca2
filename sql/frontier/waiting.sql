-- Domains with something to fetch, and when the first of it may be. Walks from domain to domain along the index, so
-- that it costs nothing to have a million URLs waiting.
WITH RECURSIVE waiting (domain) AS (
    SELECT min(domain) FROM url WHERE state = 'waiting'
    UNION ALL
    SELECT (SELECT min(url.domain) FROM url WHERE url.state = 'waiting' AND url.domain > waiting.domain)
      FROM waiting WHERE waiting.domain IS NOT NULL
)
SELECT domain,
       (SELECT min(not_before) FROM url WHERE url.state = 'waiting' AND url.domain = waiting.domain) AS ready
  FROM waiting WHERE domain IS NOT NULL;
