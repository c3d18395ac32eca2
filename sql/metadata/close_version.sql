-- The version at this path that was valid just before the snapshot :seq ends with it.
UPDATE version
   SET seq_until = :seq
 WHERE seq_from < :seq AND seq_until > :seq
   AND document IN (SELECT id FROM document WHERE path = :path);
