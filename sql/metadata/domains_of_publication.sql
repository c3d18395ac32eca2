-- The domains of which a publication has snapshots.
SELECT name FROM domain WHERE id IN (SELECT domain FROM snapshot WHERE publication = :publication) ORDER BY name;
