-- The captures of a host that show a version, those of a URL together. That a URL is gone is one if :gone.
SELECT url, id, crawl, content FROM capture
 WHERE domain = :domain AND content <> '' AND (content <> 'gone' OR :gone)
 ORDER BY url, id;
