-- The current version at this path ends with the snapshot :seq.
UPDATE version
   SET seq_until = :seq
 WHERE seq_until = 9223372036854775807
   AND document IN (SELECT id FROM document WHERE path = :path);
