UPDATE url SET state = 'waiting', status = 0, note = '' WHERE id = :id;
