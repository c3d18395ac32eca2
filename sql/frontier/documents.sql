-- Responses to be archived, in the order of the WARC: at most :most, starting after (:position, :id).
SELECT * FROM url
 WHERE batch = :batch AND domain = :domain AND arc <> '' AND status <> 304 AND (position, id) > (:position, :id)
 ORDER BY position, id
 LIMIT :most;
