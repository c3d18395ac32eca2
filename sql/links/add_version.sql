INSERT INTO version (page, domain, seq_from, seq_until, body) VALUES (:page, :domain, :seq_from, :seq_until, :body);
