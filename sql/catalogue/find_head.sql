-- The id of a record if it captured something, whoever may see it.
SELECT r.id
  FROM record AS r
 WHERE r.id = :id AND r.parts > 0;
