-- The links that the word :word names, and all of :words (a JSON array). links_narrow.sql follows.
SELECT source.url AS page, page.path AS path, reference.kind AS kind, target.url AS target, text.text AS text,
       link.times AS times, version.seq_from AS since, version.seq_until AS until
  FROM word
 CROSS JOIN naming        ON naming.word = word.id
 CROSS JOIN reference     ON reference.text = naming.text
 CROSS JOIN link          ON link.reference = reference.id
 CROSS JOIN version       ON version.body = link.body
 CROSS JOIN body          ON body.id = link.body
 CROSS JOIN page          ON page.id = body.page
 CROSS JOIN url AS source ON source.id = body.url
 CROSS JOIN domain        ON domain.id = page.domain
 CROSS JOIN url AS target ON target.id = reference.target
 CROSS JOIN text          ON text.id = reference.text
 WHERE word.word = :word
   AND NOT EXISTS (
       SELECT 1 FROM json_each(:words) AS other
        WHERE NOT EXISTS (
              SELECT 1 FROM word AS w JOIN naming AS n ON n.word = w.id
               WHERE w.word = other.value AND n.text = reference.text))
