SELECT part.id, part.source, part.ordinal, part.name, part.url, part.time, part.kind, part.rank, part.origin,
       part.position, part.digest, part.title
  FROM capture
  JOIN form ON form.url = capture.url AND form.content = capture.content
  JOIN part ON part.id = form.part
 WHERE capture.id = :capture;
