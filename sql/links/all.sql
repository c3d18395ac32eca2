-- All links, page by page. narrow.sql follows.
SELECT source.url AS page, page.path AS path, reference.kind AS kind, target.url AS target, reference.text AS text,
       link.times AS times, version.seq_from AS since, version.seq_until AS until, reference.window AS window
  FROM domain
 CROSS JOIN version       ON version.domain = domain.id
 CROSS JOIN body          ON body.id = version.body
 CROSS JOIN page          ON page.id = body.page
 CROSS JOIN url AS source ON source.id = body.url
 CROSS JOIN link          ON link.body = body.id
 CROSS JOIN reference     ON reference.id = link.reference
 CROSS JOIN url AS target ON target.id = reference.target
 WHERE 1
