-- In webarc.db: whether the archive contains a snapshot of :domain at :seq, and where it has the document: at :second, :path or :folder.
SELECT EXISTS (SELECT 1 FROM domain JOIN snapshot ON snapshot.domain = domain.id
                WHERE domain.name = :domain AND snapshot.seq <= :seq) AS domain,
       (SELECT document.path FROM document JOIN version ON version.document = document.id
         WHERE document.path IN (:second, :path, :folder) AND version.seq_from <= :seq AND version.seq_until > :seq
         ORDER BY document.path <> :second, document.path <> :path
         LIMIT 1) AS document;
