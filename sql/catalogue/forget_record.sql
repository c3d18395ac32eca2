DELETE FROM record WHERE id = :id;
