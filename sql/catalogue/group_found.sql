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
   AND (:word1 = '' OR instr(r.readerWords, :word1))
   AND (:word2 = '' OR instr(r.readerWords, :word2))
   AND (:word3 = '' OR instr(r.readerWords, :word3))
   AND (:word4 = '' OR instr(r.readerWords, :word4))
   AND (:word5 = '' OR instr(r.readerWords, :word5))
 GROUP BY r.signature, r.publication, r.project, r.occasion, r.year;
