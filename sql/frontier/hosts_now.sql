-- The hosts that the job asks, as they are now: how many URLs wait and are with wget, when the first of them may be fetched,
-- and the last outcome. The waiting ones come first.
WITH last (domain, newest, status, note) AS (
    SELECT domain, max(batch * 4294967296 + position), status, note
      FROM url WHERE batch > 0 AND status <> 0 GROUP BY domain
)
SELECT host.domain, waiting, fetching, ready, coalesce(last.status, 0) AS status, coalesce(last.note, '') AS note
  FROM (SELECT domain, sum(state = 'waiting') AS waiting, sum(state = 'fetching') AS fetching,
               min(CASE WHEN state = 'waiting' THEN not_before END) AS ready
          FROM url GROUP BY domain HAVING max(state <> 'refused')) AS host
  LEFT JOIN last ON last.domain = host.domain
 ORDER BY waiting + fetching DESC, host.domain;
