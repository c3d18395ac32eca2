DELETE FROM page WHERE domain IN (SELECT id FROM domain WHERE name = :name);
