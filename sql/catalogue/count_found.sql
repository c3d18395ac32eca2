-- How many records a list chooses by words, among others.
SELECT count(*) FROM record AS r
 WHERE (:publication = '' OR r.publication = :publication)
   AND (r.state = :state OR :state = '' AND r.state <> 'discarded')
   AND (:waits = 0 OR r.waits = 1)
   AND (:complete = -1 OR r.complete = :complete)
   AND (:passed = -1 OR r.passed = :passed)
   AND r.date >= :since AND r.date < :until
   AND (:word1 = '' OR instr(r.words, :word1))
   AND (:word2 = '' OR instr(r.words, :word2))
   AND (:word3 = '' OR instr(r.words, :word3));
