-- How many URLs of each domain wget was given, by the runs before this one.
SELECT domain, count(*) AS urls FROM url WHERE batch > 0 GROUP BY domain;
