-- The number of versions of each domain that a search has: all but those of robots.txt.
SELECT domain.name,
       (SELECT count(*) FROM version WHERE version.domain = domain.id)
       - (SELECT count(*) FROM document JOIN version ON version.document = document.id
           WHERE document.path = '/' || domain.name || '/robots.txt')
  FROM domain
