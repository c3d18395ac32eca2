DELETE FROM version WHERE domain IN (SELECT id FROM domain WHERE name = :name);
