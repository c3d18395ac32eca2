-- Uses the index with this order: with url_ready, all waiting URLs would be sorted for each batch.
SELECT * FROM url INDEXED BY url_waiting
 WHERE domain = :domain AND state = 'waiting' AND not_before <= :now
 ORDER BY depth, id LIMIT :most;
