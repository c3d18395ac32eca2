-- The record of an id, whoever may see it, as lists of readers have it; none of one without a capture.
SELECT r.id, r.number, r.publication, r.state, r.closedFor, r.title, r.signature, r.provenance, r.project, r.host,
       r.occasion, r.reason, r.date, r.complete, r.documents, r.bytes, r.released, r.releases, r.held
  FROM record AS r
 WHERE r.id = :id AND r.parts > 0;
