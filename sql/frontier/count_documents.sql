SELECT count(*) AS documents FROM url WHERE domain = :domain AND arc <> '';
