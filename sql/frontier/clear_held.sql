DELETE FROM held WHERE domain = :domain;
