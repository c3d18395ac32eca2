-- Whether the crawl has anything of a domain for the archive beside the feed that its publication watches.
SELECT EXISTS (SELECT 1 FROM url WHERE domain = :domain AND kind NOT IN ('robots', 'feed')
                                   AND (arc <> '' OR (target <> '' AND state = 'done')));
