-- The parts of these records, in the order of each: those with pages first.
SELECT record, domain, seq, resource FROM part
 WHERE record IN (SELECT value FROM json_each(:records))
 ORDER BY record, resource, position;
