-- Responses to be archived that share their ARC with another response.
SELECT * FROM url
 WHERE domain = :domain AND arc <> ''
   AND arc IN (SELECT arc FROM url WHERE domain = :domain AND arc <> '' GROUP BY arc HAVING count(*) > 1)
 ORDER BY arc, id;
