-- Uses the index with this order: with url_ready, all waiting URLs would be sorted for each batch.
SELECT url.*, coalesce(named.named, '') AS named FROM url INDEXED BY url_waiting LEFT JOIN named ON named.id = url.id
 WHERE domain = :domain AND state = 'waiting' AND not_before <= :now
 ORDER BY depth, url.id LIMIT :most;
