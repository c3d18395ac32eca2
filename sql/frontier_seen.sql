SELECT arc, nested FROM seen WHERE domain = :domain ORDER BY arc;
