-- Domains with something to fetch, and when the first of it may be.
SELECT domain, min(not_before) AS ready FROM url WHERE state = 'waiting' GROUP BY domain;
