SELECT count(*) AS seen FROM seen WHERE domain = :domain;
