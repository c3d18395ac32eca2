-- Hosts that nothing links to any more.
DELETE FROM domain WHERE id NOT IN (
    SELECT domain FROM url WHERE domain IS NOT NULL UNION SELECT domain FROM page UNION SELECT domain FROM snapshot
);
