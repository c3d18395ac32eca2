-- The links to the URLs :targets (a JSON array). narrow.sql follows.
SELECT source.url AS page, page.path AS path, reference.kind AS kind, target.url AS target, reference.text AS text,
       link.times AS times, version.seq_from AS since, version.seq_until AS until, reference.window AS window
  FROM url AS target
 CROSS JOIN reference     ON reference.target = target.id
 CROSS JOIN link          ON link.reference = reference.id
 CROSS JOIN version       ON version.body = link.body
 CROSS JOIN body          ON body.id = link.body
 CROSS JOIN page          ON page.id = body.page
 CROSS JOIN url AS source ON source.id = body.url
 CROSS JOIN domain        ON domain.id = page.domain
 WHERE target.url IN (SELECT value FROM json_each(:targets))
