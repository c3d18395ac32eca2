-- Ends the version at this path that was valid directly before the snapshot :seq.
UPDATE version
   SET seq_until = :seq
 WHERE seq_from < :seq AND seq_until > :seq
   AND document IN (SELECT id FROM document WHERE path = :path);
