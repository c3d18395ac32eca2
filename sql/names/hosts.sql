-- The domains with snapshots whose names are from :low up to :high, in order.
SELECT name FROM domain
 WHERE name >= :low AND name < :high AND EXISTS (SELECT 1 FROM snapshot WHERE snapshot.domain = domain.id)
 ORDER BY name
 LIMIT :limit;
