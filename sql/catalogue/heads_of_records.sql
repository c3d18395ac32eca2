-- These records, as lists of readers have them.
SELECT id, number, publication, state, closedFor, title, signature, provenance, project, host, occasion, reason, date,
       complete, documents, bytes, released, releases, held
  FROM record
 WHERE id IN (SELECT value FROM json_each(:records));
