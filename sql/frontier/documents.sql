-- Answers to be archived, in the order in which they lie in the WARC; some, from behind the last one on.
SELECT * FROM url
 WHERE batch = :batch AND domain = :domain AND arc <> '' AND (position, id) > (:position, :id)
 ORDER BY position, id
 LIMIT :most;
