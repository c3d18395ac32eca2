INSERT INTO version (page, domain, seq_from, seq_until, body, resource)
VALUES (:page, :domain, :seq_from, :seq_until, :body, :resource);
