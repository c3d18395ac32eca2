SELECT result, count(*) AS urls FROM url WHERE domain = :domain AND result <> '' GROUP BY result;
