-- By the index that has them in this order: by the other one, all that waits would be sorted for each batch.
SELECT * FROM url INDEXED BY url_waiting
 WHERE domain = :domain AND state = 'waiting' AND not_before <= :now
 ORDER BY depth, id LIMIT :most;
