SELECT url.*, coalesce(named.named, '') AS named FROM url LEFT JOIN named ON named.id = url.id
 WHERE state = 'fetching' AND batch = :batch ORDER BY url.id;
