-- The URLs found after another one that no crawl rule lets in, with the page on which each was found.
SELECT url.*, page.url AS referrer FROM url LEFT JOIN url AS page ON page.id = url.found_on
 WHERE url.id > :since AND url.state = 'refused' AND url.batch = 0 ORDER BY url.id;
