-- Hosts that the crawl was to ask for something, and whether pages of theirs belong to it. What the scope refuses does not
-- count: of the refused, robots.txt, limits and people came later.
SELECT domain, max(embedded = 0) AS has_pages, sum(state = 'failed') AS failed FROM url
 WHERE kind <> 'robots' AND (state <> 'refused' OR status IN (-9998, -6000, -5003, -5001))
 GROUP BY domain ORDER BY domain;
