-- The domains whose pages are indexed.
SELECT name FROM domain WHERE EXISTS (SELECT 1 FROM snapshot WHERE domain = domain.id) ORDER BY name;
