-- Whether the crawl saw a body for an ARC.
SELECT EXISTS (SELECT 1 FROM url WHERE domain = :domain AND arc = :arc AND arc <> ''
                  AND result IN ('added', 'changed', 'unchanged'));
