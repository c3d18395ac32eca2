SELECT * FROM url WHERE kind = 'seed' ORDER BY id;
