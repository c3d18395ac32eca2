-- The captures in order of time; of one moment in the order of their files and records.
INSERT INTO capture (source, name, url, domain, time, state, status, note, batch, position, size, mime, digest,
                     arc, target, content, head)
SELECT source, name, url, domain, time, state, status, note, batch, position, size, mime, digest,
       arc, target, content, head
  FROM found
 ORDER BY time, fraction, source, ordinal, id;
