-- How many versions of a domain began and ended in which snapshots.
SELECT version.seq_from, version.seq_until, count(*)
  FROM version INDEXED BY version_by_type
 WHERE version.domain = (SELECT id FROM domain WHERE name = :domain)
 GROUP BY version.seq_from, version.seq_until
