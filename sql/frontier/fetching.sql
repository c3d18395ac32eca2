SELECT * FROM url WHERE state = 'fetching' AND batch = :batch ORDER BY id;
