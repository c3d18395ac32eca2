SELECT * FROM capture WHERE crawl = :crawl AND domain = :domain AND cut > 0 ORDER BY url, id;
