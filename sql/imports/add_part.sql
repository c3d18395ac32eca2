INSERT INTO part (source, ordinal, name, url, time, kind, rank, origin, position, digest, title)
VALUES (:source, :ordinal, :name, :url, :time, :kind, :rank, :origin, :position, :digest, :title);
