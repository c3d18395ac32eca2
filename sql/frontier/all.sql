SELECT url.*, page.url AS referrer FROM url LEFT JOIN url AS page ON page.id = url.found_on ORDER BY url.id;
