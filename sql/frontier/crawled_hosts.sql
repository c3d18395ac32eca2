-- Hosts that the crawl was to ask for something, and whether pages of theirs belong to it. What the scope refuses does not
-- count: the `later` statuses are those of robots.txt, limits and people, which came after it.
SELECT domain, max(embedded = 0) AS has_pages, sum(state = 'failed') AS failed FROM url
 WHERE kind <> 'robots' AND (state <> 'refused' OR status IN (SELECT value FROM json_each(:later)))
 GROUP BY domain ORDER BY domain;
