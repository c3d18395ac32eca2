SELECT id FROM domain WHERE name = :name;
