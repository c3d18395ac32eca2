-- The revisits of a crawl that found nothing.
SELECT DISTINCT revisit.* FROM capture
  JOIN revisit ON revisit.url = capture.url AND revisit.time = capture.time AND revisit.source = capture.source
 WHERE capture.crawl = :crawl AND capture.state = 'failed' AND capture.note = :note
 ORDER BY revisit.id;
