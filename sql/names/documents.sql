-- How many pages of :host are in the snapshots from one up to another, without error pages.
SELECT version.seq_from, version.seq_until, count(*)
  FROM version
 WHERE version.domain = (SELECT id FROM domain WHERE name = :host)
   AND version.status < 400 AND version.resource = 0
 GROUP BY version.seq_from, version.seq_until;
