INSERT INTO found (source, ordinal, name, url, domain, time, fraction, state, status, note, batch, position,
                   size, mime, digest, arc, target, content, head)
VALUES (:source, :ordinal, :name, :url, :domain, :time, :fraction, :state, :status, :note, :batch, :position,
        :size, :mime, :digest, :arc, :target, :content, :head);
