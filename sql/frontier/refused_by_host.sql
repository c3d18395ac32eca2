SELECT * FROM url WHERE domain = :domain AND state = 'refused' AND status = -5000;
