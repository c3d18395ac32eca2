SELECT DISTINCT batch FROM capture WHERE crawl = :crawl AND cut > 0 AND arc <> '' ORDER BY batch;
