SELECT DISTINCT batch FROM url WHERE domain = :domain AND arc <> '' AND status <> 304 ORDER BY batch;
