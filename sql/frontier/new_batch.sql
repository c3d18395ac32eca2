INSERT INTO batch (id, domain, state) VALUES (:id, :domain, 'running');
