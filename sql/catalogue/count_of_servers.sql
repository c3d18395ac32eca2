-- How many records `list_of_servers` lists in all.
SELECT count(*)
  FROM record AS r
 WHERE r.id IN (
       SELECT other.record FROM part AS own JOIN part AS other ON other.domain = own.domain
        WHERE own.record = :id AND own.resource = 0 AND other.resource = 0)
   AND r.state <> 'discarded'
   AND r.date >= :since AND r.date < :until;
