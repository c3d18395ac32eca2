SELECT DISTINCT source FROM capture WHERE crawl = :crawl AND domain = :domain AND cut = :cut ORDER BY source;
