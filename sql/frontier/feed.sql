-- The feed that the publication watches, as it is written in its settings.
SELECT * FROM url WHERE kind = 'feed' AND found_on IS NULL ORDER BY id LIMIT 1;
