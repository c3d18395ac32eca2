-- Those of these records that readers may see: number, publication and date of each.
SELECT id, number, publication, date FROM record
 WHERE shown = 1 AND id IN (SELECT value FROM json_each(:records));
