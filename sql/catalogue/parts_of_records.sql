-- The parts of these records, in the order of each.
SELECT record, domain, seq, held, resource FROM part
 WHERE record IN (SELECT value FROM json_each(:records))
 ORDER BY record, position;
