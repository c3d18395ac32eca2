-- The mean size, with resources, of the last captures of each publication, as they were counted, and their number, :most at most.
SELECT publication, avg(bytes + resources), count(*)
  FROM (SELECT publication, bytes, resources, row_number() OVER (PARTITION BY publication ORDER BY date DESC) AS nth
          FROM record
         WHERE bytes IS NOT NULL AND parts > 0 AND state <> 'discarded')
 WHERE nth <= :most
 GROUP BY publication;
