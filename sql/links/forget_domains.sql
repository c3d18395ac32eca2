-- Deletes the domains without URLs, pages and snapshots.
DELETE FROM domain WHERE id NOT IN (
    SELECT domain FROM url WHERE domain IS NOT NULL UNION SELECT domain FROM page UNION SELECT domain FROM snapshot
);
