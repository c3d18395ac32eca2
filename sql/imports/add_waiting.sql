-- A revisit that an earlier import could not resolve: of no file, and of no crawl with a name.
INSERT INTO revisit (source, ordinal, name, url, time, fraction, digest, origin, seen, head)
VALUES (0, 0, '', :url, :time, :fraction, :digest, :origin, :seen, :head);
