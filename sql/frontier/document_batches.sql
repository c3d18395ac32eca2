SELECT DISTINCT batch FROM url WHERE domain = :domain AND arc <> '' ORDER BY batch;
