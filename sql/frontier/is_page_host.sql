-- Whether the crawl goes for pages to a domain: something waits there that is no resource of a page elsewhere.
SELECT EXISTS (SELECT 1 FROM url INDEXED BY url_waiting
                WHERE domain = :domain AND state = 'waiting' AND embedded = 0
                  AND kind IN ('seed', 'link', 'redirect', 'listed'));
