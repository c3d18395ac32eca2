-- The snapshot of the domain that follows :seq in time; NULL where it is the newest.
SELECT min(seq) AS next FROM snapshot WHERE domain = :domain AND seq > :seq;
