-- Of how many domains readers may see a page in some record.
SELECT count(*) FROM (SELECT DISTINCT domain FROM part) AS d
 WHERE EXISTS (SELECT 1 FROM part AS p JOIN record AS r ON r.id = p.record
                WHERE p.domain = d.domain AND p.resource = 0 AND r.shown = 1);
