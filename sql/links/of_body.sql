-- A page of the links of a body, by reference, behind :last.
SELECT link.reference, reference.kind, url.url, reference.text, link.times, coalesce(domain.name, '')
  FROM link
 CROSS JOIN reference ON reference.id = link.reference
 CROSS JOIN url       ON url.id = reference.target
  LEFT JOIN domain    ON domain.id = url.domain
 WHERE link.body = :body AND link.reference > :last
 ORDER BY link.reference
 LIMIT :limit;
