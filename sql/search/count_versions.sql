-- The number of versions of each domain.
SELECT domain.name, (SELECT count(*) FROM version WHERE version.domain = domain.id) FROM domain
