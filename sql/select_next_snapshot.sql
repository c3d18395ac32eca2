-- The next snapshot of the domain after :seq; NULL if :seq is the newest.
SELECT min(seq) AS next FROM snapshot WHERE domain = :domain AND seq > :seq;
