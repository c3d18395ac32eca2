SELECT DISTINCT source FROM capture WHERE crawl = :crawl AND domain = :domain AND cut = :cut AND source > 0 ORDER BY source;
