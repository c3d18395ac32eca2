-- These records, as lists of readers have them.
SELECT id, number, publication, state, closedFor, CASE titled WHEN 1 THEN title ELSE '' END, signature, provenance, project, host, occasion, reason, date,
       complete, documents, bytes, released, releases, held, updated
  FROM record
 WHERE id IN (SELECT value FROM json_each(:records));
