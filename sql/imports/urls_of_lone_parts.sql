SELECT DISTINCT url FROM part
 WHERE NOT EXISTS (SELECT 1 FROM found WHERE found.url = part.url AND found.arc <> '' AND found.content <> '')
 ORDER BY url;
