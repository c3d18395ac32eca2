SELECT count(*) AS documents FROM url WHERE domain = :domain AND arc <> '' AND status <> 304;
