-- The numbers of ARCs in the table met, in the order of :paths; NULL for a path that no snapshot has.
SELECT (SELECT min(id) FROM document WHERE path = wanted.value) FROM json_each(:paths) AS wanted ORDER BY wanted.key;
