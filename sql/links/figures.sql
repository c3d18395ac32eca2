-- The links of pages in the snapshot :seq of :domain, grouped by kind and by whether they leave the domain: their number, and
-- the number of their targets. Menus are on every page, so references are summed before targets are joined.
WITH said AS (
    SELECT link.reference AS reference, sum(link.times) AS times
      FROM domain
     CROSS JOIN version ON version.domain = domain.id AND version.seq_until > :seq AND version.seq_from <= :seq
                       AND NOT version.resource
     CROSS JOIN link    ON link.body = version.body
     WHERE domain.name = :domain
     GROUP BY link.reference
)
SELECT reference.kind AS kind,
       target.domain IS NOT (SELECT id FROM domain WHERE name = :domain) AS external,
       sum(said.times) AS links,
       count(DISTINCT reference.target) AS targets
  FROM said
 CROSS JOIN reference     ON reference.id = said.reference
 CROSS JOIN url AS target ON target.id = reference.target
 GROUP BY 1, 2;
