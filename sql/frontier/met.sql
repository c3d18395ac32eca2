-- The answers of a domain that the archive had already, by ARC, in the order of a tree (git sorts a folder as if its name ended in a
-- slash), and beside them those of other URLs at the same place with the same bytes. Not those in whose place something else stays, or
-- that have a version of this crawl, since they became pages.
SELECT arc, url, captured, status, result = 'duplicate' AS is_duplicate FROM url
 WHERE domain = :domain AND arc <> ''
   AND (result = 'unchanged' AND NOT instr(',' || note || ',', ',older,') AND NOT instr(',' || note || ',', ',error-held,')
        AND NOT instr(',' || note || ',', ',became-page,')
        OR result = 'duplicate' AND instr(',' || note, ',same-as:'))
   AND NOT instr(',' || note || ',', ',response-held,')
 ORDER BY arc || '/', id;
