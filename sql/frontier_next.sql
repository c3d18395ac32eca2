SELECT * FROM url
 WHERE domain = :domain AND state = 'waiting' AND not_before <= :now
 ORDER BY depth, id LIMIT :most;
