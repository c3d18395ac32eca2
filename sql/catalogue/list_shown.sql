-- A part of the records that readers choose, newest first. An index has all that chooses them, but for words.
SELECT s.id FROM record AS s
 WHERE s.shown = 1
   AND (:signature = '' OR s.signature = :signature)
   AND (:publication = '' OR s.publication = :publication)
   AND (:project = '' OR s.project = :project)
   AND (:occasion = -1 OR s.occasion = :occasion)
   AND (:year = '' OR s.year = :year)
   AND (:words = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(:words) WHERE NOT instr(s.readerWords, value)))
 ORDER BY s.date DESC, s.number DESC
 LIMIT :limit OFFSET :offset;
