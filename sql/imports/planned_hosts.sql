-- The captures and snapshots that a host will have in a crawl.
SELECT capture.crawl, capture.domain, count(*) AS captures, sum(capture.size) AS bytes,
       (SELECT count(*) FROM cut WHERE cut.crawl = capture.crawl AND cut.domain = capture.domain AND outcome = '') AS cuts
  FROM capture JOIN cut ON cut.crawl = capture.crawl AND cut.domain = capture.domain AND cut.number = capture.cut
 WHERE capture.content NOT IN ('', 'gone') AND cut.outcome = ''
 GROUP BY capture.crawl, capture.domain
 ORDER BY capture.crawl, capture.domain;
