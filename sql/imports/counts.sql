SELECT state, count(*) AS urls, coalesce(sum(size), 0) AS bytes, sum(state = 'done') AS documents
  FROM (SELECT state, size FROM found WHERE domain <> '' UNION ALL
        SELECT state, size FROM capture WHERE domain <> '' AND (:crawl = 0 OR crawl = :crawl))
 GROUP BY state;
