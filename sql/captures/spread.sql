-- Snapshots whose versions were captured on several days: domain, time, first and last capture.
SELECT domain.name, version.stored, min(version.captureTime) AS first, max(version.captureTime) AS last
  FROM version JOIN domain ON domain.id = version.domain
 GROUP BY domain.name, version.stored
HAVING substr(first, 1, 10) < substr(last, 1, 10)
 ORDER BY domain.name, version.stored;
