SELECT * FROM url WHERE url = :url;
