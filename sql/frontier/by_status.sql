SELECT status, count(*) AS urls FROM url GROUP BY status ORDER BY status;
