-- The records that a list chooses, newest first, each with the counted one of its publication before it.
SELECT r.number, r.publication, r.state, r.title, r.domain, r.date, r.complete, r.parts, r.occasion, r.reason, r.release,
       r.closedFor, r.documents, r.bytes, r.passed, r.progress, r.id, b.id, b.documents, b.bytes
  FROM record AS r
  LEFT JOIN record AS b ON b.id = (
       SELECT o.id FROM record AS o
        WHERE o.publication = r.publication AND o.date < r.date AND o.documents IS NOT NULL AND o.state <> 'discarded'
        ORDER BY o.date DESC LIMIT 1)
 WHERE (:publication = '' OR r.publication = :publication)
   AND (r.state = :state OR :state = '' AND r.state <> 'discarded')
   AND (:waits = 0 OR r.waits = 1)
   AND (:complete = -1 OR r.complete = :complete)
   AND (:passed = -1 OR r.passed = :passed)
   AND r.date >= :since AND r.date < :until
   AND (:word1 = '' OR instr(r.words, :word1))
   AND (:word2 = '' OR instr(r.words, :word2))
   AND (:word3 = '' OR instr(r.words, :word3))
 ORDER BY r.date DESC, r.number DESC
 LIMIT :limit OFFSET :offset;
