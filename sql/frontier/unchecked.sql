-- How many documents each host sent under a certificate that was not valid, by the annotations that say why.
SELECT domain, note, count(*) AS urls
  FROM url
 WHERE state = 'done' AND result IN ('added', 'changed', 'unchanged') AND kind <> 'robots'
   AND (',' || note LIKE '%,tls,%' OR ',' || note LIKE '%,tls' OR ',' || note LIKE '%,tls:%')
 GROUP BY domain, note;
