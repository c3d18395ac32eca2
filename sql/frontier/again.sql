UPDATE url SET state = 'waiting', not_before = 0, target = '' WHERE id = :id;
