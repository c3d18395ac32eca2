UPDATE url SET state = 'waiting', not_before = 0 WHERE id = :id;
