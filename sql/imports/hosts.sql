-- Hosts and crawls that have something for the archive, with the first capture of that; if :all, or nothing.
SELECT domain, crawl, coalesce(min(CASE WHEN content NOT IN ('', 'gone') THEN id END), min(id)) FROM capture
 WHERE domain <> '' AND (:all OR content NOT IN ('', 'gone'))
 GROUP BY domain, crawl
 ORDER BY domain, crawl;
