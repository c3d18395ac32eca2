UPDATE batch SET state = 'read' WHERE id = :id;
