-- The links whose texts contain all of :words, each in quotation marks. narrow.sql follows.
SELECT source.url AS page, page.path AS path, reference.kind AS kind, target.url AS target, reference.text AS text,
       link.times AS times, version.seq_from AS since, version.seq_until AS until, reference.window AS window
  FROM naming
 CROSS JOIN reference     ON reference.id = naming.rowid
 CROSS JOIN link          ON link.reference = reference.id
 CROSS JOIN version       ON version.body = link.body
 CROSS JOIN body          ON body.id = link.body
 CROSS JOIN page          ON page.id = body.page
 CROSS JOIN url AS source ON source.id = body.url
 CROSS JOIN domain        ON domain.id = page.domain
 CROSS JOIN url AS target ON target.id = reference.target
 WHERE naming MATCH :words
