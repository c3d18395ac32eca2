SELECT id, source, ordinal, name, url, time, kind, rank, origin, position, digest, title
  FROM part
 ORDER BY url, time, id;
