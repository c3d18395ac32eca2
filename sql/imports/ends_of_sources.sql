-- Each file with the last snapshot that has a capture of it.
SELECT source, max(begin)
  FROM (SELECT DISTINCT source, crawl, domain, cut FROM capture WHERE cut > 0 AND source > 0) AS used
  JOIN cut ON cut.crawl = used.crawl AND cut.domain = used.domain AND cut.number = used.cut
 GROUP BY source;
