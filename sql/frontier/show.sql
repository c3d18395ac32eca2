UPDATE view SET state = 'showing', batch = :batch WHERE id = :id;
