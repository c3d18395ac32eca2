DELETE FROM part WHERE record = :id;
