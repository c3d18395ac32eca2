-- The hosts of all that a page names, and whether the crawl took anything there.
SELECT domain, max(state <> 'refused') AS is_taken FROM url WHERE found_on = :id GROUP BY domain ORDER BY domain;
