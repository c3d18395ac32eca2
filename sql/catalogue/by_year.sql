-- What each publication captured in each year of CET: snapshots, those that are not counted, documents and bytes of the
-- others, the bytes with resources. Each snapshot counts whole, whatever it shares with others.
SELECT publication,
       CAST(strftime('%Y', date + 3600, 'unixepoch') AS INTEGER) AS year,
       count(*),
       count(*) - count(bytes),
       total(documents),
       total(bytes + resources)
  FROM record
 WHERE parts > 0 AND state <> 'discarded'
 GROUP BY publication, year
 ORDER BY publication, year;
