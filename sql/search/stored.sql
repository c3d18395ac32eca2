-- How many versions the crawls of some snapshots of a domain stored, with the first and the last capture of each.
SELECT version.stored, count(*), min(version.captureTime), max(version.captureTime)
  FROM version INDEXED BY version_by_type
 WHERE version.domain = (SELECT id FROM domain WHERE name = :domain)
   AND version.seq_from IN (SELECT value FROM json_each(:seqs))
   AND version.stored = version.seq_from
 GROUP BY version.stored
