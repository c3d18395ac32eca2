-- The URLs of each domain in batches, over all runs of the job; and those that were asked for, without robots.txt.
SELECT domain, count(*) AS urls, sum(kind <> 'robots' AND state <> 'waiting') AS documents
  FROM url WHERE batch > 0 GROUP BY domain;
