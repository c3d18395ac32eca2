INSERT INTO record (id, number, publication, state, closedFor) VALUES (:id, :number, :publication, :state, :closedFor);
