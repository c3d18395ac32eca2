SELECT * FROM url WHERE found_on = :id AND kind = 'redirect' ORDER BY id LIMIT 1;
