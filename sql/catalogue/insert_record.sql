INSERT INTO record (id, number, publication, state, closedFor, date, title, domain, complete, parts, occasion, reason,
                    release, documents, bytes, resources, waits, passed, progress, words)
VALUES (:id, :number, :publication, :state, :closedFor, :date, :title, :domain, :complete, :parts, :occasion, :reason,
        :release, :documents, :bytes, :resources, :waits, :passed, :progress, :words);
