INSERT INTO revisit (source, ordinal, name, url, time, fraction, digest, origin, seen, head)
VALUES (:source, :ordinal, :name, :url, :time, :fraction, :digest, :origin, :seen, :head);
