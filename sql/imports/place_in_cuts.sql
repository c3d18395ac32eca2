-- A capture is in the last snapshot that begins before it, or in the first one. A host without snapshots has none.
UPDATE capture
   SET cut = coalesce((SELECT coalesce(max(CASE WHEN begin <= capture.id THEN number END), min(number)) FROM cut
                        WHERE cut.crawl = capture.crawl AND cut.domain = capture.domain), 0)
 WHERE domain <> '';
