DELETE FROM seen WHERE domain = :domain;
