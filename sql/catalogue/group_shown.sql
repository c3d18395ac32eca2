-- The records that readers may see, counted by all that they choose by, with the dates of the first and the last.
SELECT signature, publication, project, occasion, year, count(*), min(date), max(date)
  FROM record
 WHERE shown = 1
 GROUP BY signature, publication, project, occasion, year;
