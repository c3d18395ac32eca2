-- The URLs of a batch that have an outcome, with the page on which each was found.
SELECT url.*, page.url AS referrer FROM url LEFT JOIN url AS page ON page.id = url.found_on
 WHERE url.batch = :batch AND url.state IN ('done', 'failed', 'refused') ORDER BY url.position, url.id;
