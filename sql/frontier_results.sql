SELECT result, count(*) AS urls FROM url WHERE result <> '' GROUP BY result;
