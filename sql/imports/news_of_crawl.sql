-- 0: the crawl has snapshots, and the archive had each of them before.
SELECT NOT EXISTS (SELECT 1 FROM cut WHERE crawl = :crawl)
       OR EXISTS (SELECT 1 FROM cut WHERE crawl = :crawl AND (outcome = '' OR NOT json_extract(outcome, '$.known'))) AS news;
