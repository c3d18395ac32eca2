-- The newest records of each of these publications that readers may see, :most at most of each.
SELECT s.id
  FROM json_each(:publications) AS p
  JOIN record AS s ON s.rowid IN (
       SELECT o.rowid FROM record AS o
        WHERE o.shown = 1 AND o.publication = p.value
        ORDER BY o.date DESC, o.number DESC
        LIMIT :most)
 ORDER BY s.publication, s.date DESC, s.number DESC;
