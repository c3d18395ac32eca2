-- How many records of :publication readers may see, by year.
SELECT year, count(*)
  FROM record INDEXED BY record_shown_of_publication
 WHERE shown = 1 AND publication = :publication
 GROUP BY year;
