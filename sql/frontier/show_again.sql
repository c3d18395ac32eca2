-- A page whose browser ended waits once more; after the last try it has failed.
UPDATE view
   SET tries = tries + :tried, words = CASE WHEN tries + :tried >= :most THEN :word ELSE words END,
       state = CASE WHEN tries + :tried >= :most THEN 'failed' ELSE 'waiting' END
 WHERE id = :id;
