SELECT
    state,
    count(*) AS urls,
    coalesce(sum(size), 0) AS bytes,
    sum(state = 'done' AND kind <> 'robots') AS documents
FROM url
GROUP BY state;
