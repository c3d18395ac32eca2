-- The number of URLs of each domain in batches, over all runs of the job.
SELECT domain, count(*) AS urls FROM url WHERE batch > 0 GROUP BY domain;
