-- The first :length letters of the commitTags from :low up to :high: years, months or days that have snapshots.
SELECT DISTINCT substr(commitTag, 1, :length) AS step FROM snapshot
 WHERE commitTag >= :low AND commitTag < :high
 ORDER BY step DESC
 LIMIT :limit;
