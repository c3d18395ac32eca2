SELECT * FROM url WHERE id = :id;
