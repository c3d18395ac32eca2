-- Gives the documents of a domain the first names of their ARCs again: what follows the last "%http" is a second name's.
UPDATE url
   SET arc = CASE WHEN arc LIKE '%!%https.index' ESCAPE '!' THEN substr(arc, 1, length(arc) - 12)
                  WHEN arc LIKE '%!%http.index' ESCAPE '!' THEN substr(arc, 1, length(arc) - 11)
                  WHEN arc LIKE '%!%https' ESCAPE '!' THEN substr(arc, 1, length(arc) - 6)
                  ELSE substr(arc, 1, length(arc) - 5) END
 WHERE domain = :domain AND arc LIKE '%!%http%' ESCAPE '!'
   AND (arc LIKE '%!%https.index' ESCAPE '!' OR arc LIKE '%!%http.index' ESCAPE '!'
        OR arc LIKE '%!%https' ESCAPE '!' OR arc LIKE '%!%http' ESCAPE '!');
