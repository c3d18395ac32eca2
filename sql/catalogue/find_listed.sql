-- The record of an id, as a list has it.
SELECT r.number, r.publication, r.state, r.title, r.domain, r.date, r.complete, r.parts, r.occasion, r.reason, r.release,
       r.closedFor, r.documents, r.bytes, r.passed, r.progress, r.id, b.id, b.documents, b.bytes
  FROM record AS r
  LEFT JOIN record AS b ON b.id = (
       SELECT o.id FROM record AS o
        WHERE o.publication = r.publication AND o.date < r.date AND o.documents IS NOT NULL AND o.state <> 'discarded'
        ORDER BY o.date DESC LIMIT 1)
 WHERE r.id = :id;
