SELECT * FROM view WHERE id = :id;
