SELECT * FROM url WHERE kind = 'seed' AND id > :after ORDER BY id LIMIT :most;
