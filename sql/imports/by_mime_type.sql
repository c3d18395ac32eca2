SELECT mime, count(*) AS documents FROM capture
 WHERE crawl = :crawl AND result IN ('added', 'changed', 'unchanged') GROUP BY mime ORDER BY mime;
