DELETE FROM snapshot WHERE domain IN (SELECT id FROM domain WHERE name = :name);
