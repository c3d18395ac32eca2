-- What was captured again in one snapshot is unchanged, or has the result of its first capture there.
UPDATE capture AS again
   SET result = coalesce((SELECT CASE WHEN result IN ('added', 'changed') THEN 'unchanged' ELSE result END
                            FROM capture AS settled
                           WHERE settled.crawl = again.crawl AND settled.domain = again.domain
                             AND settled.cut = again.cut AND settled.url = again.url AND settled.result <> ''
                           LIMIT 1), '')
 WHERE crawl = :crawl AND domain = :domain AND cut = :cut AND arc <> '' AND result = '';
