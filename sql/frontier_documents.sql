-- Answers to be archived, in the order in which they lie in the WARC.
SELECT * FROM url WHERE batch = :batch AND domain = :domain AND arc <> '' ORDER BY position;
