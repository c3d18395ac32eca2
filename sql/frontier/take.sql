UPDATE url SET state = 'fetching', batch = :batch WHERE id = :id;
