-- The records with pages of a server of which the record :id has pages, of any publication, newest first, each with the
-- counted one of its publication before it.
SELECT r.number, r.publication, r.state, r.title, r.domain, r.date, r.complete, r.parts, r.occasion, r.reason, r.release,
       r.closedFor, r.documents, r.bytes, r.passed, r.progress, r.id, b.id, b.documents, b.bytes
  FROM record AS r
  LEFT JOIN record AS b ON b.id = (
       SELECT o.id FROM record AS o
        WHERE o.publication = r.publication AND o.date < r.date AND o.documents IS NOT NULL AND o.state <> 'discarded'
        ORDER BY o.date DESC LIMIT 1)
 WHERE r.id IN (
       SELECT other.record FROM part AS own JOIN part AS other ON other.domain = own.domain
        WHERE own.record = :id AND own.resource = 0 AND other.resource = 0)
   AND r.state <> 'discarded'
   AND r.date >= :since AND r.date < :until
 ORDER BY r.date DESC, r.number DESC
 LIMIT :limit OFFSET :offset;
