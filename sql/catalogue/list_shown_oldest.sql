-- A part of the records that readers choose, oldest first. An index has all that chooses them, but for words.
SELECT s.id FROM record AS s
 WHERE s.shown = 1
   AND (:signature = '' OR s.signature = :signature)
   AND (:publication = '' OR s.publication = :publication)
   AND (:project = '' OR s.project = :project)
   AND (:occasion = -1 OR s.occasion = :occasion)
   AND (:year = '' OR s.year = :year)
   AND (:word1 = '' OR instr(s.readerWords, :word1))
   AND (:word2 = '' OR instr(s.readerWords, :word2))
   AND (:word3 = '' OR instr(s.readerWords, :word3))
   AND (:word4 = '' OR instr(s.readerWords, :word4))
   AND (:word5 = '' OR instr(s.readerWords, :word5))
 ORDER BY s.date ASC, s.number ASC
 LIMIT :limit OFFSET :offset;
