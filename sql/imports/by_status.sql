SELECT status, count(*) AS urls FROM capture WHERE crawl = :crawl AND domain <> '' GROUP BY status ORDER BY status;
