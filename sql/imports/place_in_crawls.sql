-- Each capture is in the crawl of its name that had begun at its time. A record without a capture is in the first one
-- where there is none.
UPDATE capture
   SET crawl = coalesce((SELECT number FROM crawl WHERE crawl.name = capture.name AND crawl.first <= capture.time
                          ORDER BY crawl.first DESC LIMIT 1), 1);
