-- The records that readers chose, also by words, counted by all that they choose by, with the dates of the first and
-- the last.
SELECT r.signature, r.publication, r.project, r.occasion, r.year, count(*), min(r.date), max(r.date)
  FROM record AS r
 WHERE r.shown = 1
   AND (:signature = '' OR r.signature = :signature)
   AND (:publication = '' OR r.publication = :publication)
   AND (:project = '' OR r.project = :project)
   AND (:occasion = -1 OR r.occasion = :occasion)
   AND (:year = '' OR r.year = :year)
   AND (:words = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(:words) WHERE NOT instr(r.readerWords, value)))
 GROUP BY r.signature, r.publication, r.project, r.occasion, r.year;
