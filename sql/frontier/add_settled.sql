-- Adds a URL with its outcome.
INSERT INTO url (id, url, domain, kind, depth, hops, state, tries, status, note, batch, position, size, mime, digest,
                 captured, arc, target)
VALUES (:id, :url, :domain, :kind, 0, '', :state, 1, :status, :note, :batch, :position, :size, :mime, :digest,
        :captured, :arc, :target);
