-- Ends the redirect of a URL that was valid directly before the snapshot :seq.
UPDATE redirect SET seq_until = :seq
 WHERE domain = :domain AND url = :url AND seq_from < :seq AND seq_until > :seq;
