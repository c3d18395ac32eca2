-- The publications that have records, with the number of these, and the time of the newest.
SELECT publication, count(*), max(date) FROM record GROUP BY publication ORDER BY publication;
