-- The commitTags from :low up to :high, newest first.
SELECT commitTag FROM snapshot WHERE commitTag >= :low AND commitTag < :high ORDER BY commitTag DESC LIMIT :limit;
