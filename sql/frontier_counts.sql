SELECT state, count(*) AS urls, coalesce(sum(size), 0) AS bytes FROM url GROUP BY state;
