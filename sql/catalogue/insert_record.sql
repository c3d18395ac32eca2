INSERT INTO record (id, number, publication, state, closedFor, date, title, titled, domain, complete, parts, occasion, reason,
                    release, documents, bytes, resources, waits, passed, progress, extensions, words, held, shown,
                    closedUntil, signature, provenance, project, host, year, released, releases, updated, gone, readerWords)
VALUES (:id, :number, :publication, :state, :closedFor, :date, :title, :titled, :domain, :complete, :parts, :occasion, :reason,
        :release, :documents, :bytes, :resources, :waits, :passed, :progress, :extensions, :words, :held, :shown,
        :closedUntil, :signature, :provenance, :project, :host, :year, :released, :releases, :updated, :gone, :readerWords);
