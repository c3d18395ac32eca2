INSERT INTO revisit (url, time, digest, origin, seen, head) VALUES (:url, :time, :digest, :origin, :seen, :head);
