INSERT INTO record (id, number, publication, state, closedFor, date, title, domain, complete, parts, occasion, reason,
                    release, documents, bytes, waits, passed, progress, words)
VALUES (:id, :number, :publication, :state, :closedFor, :date, :title, :domain, :complete, :parts, :occasion, :reason,
        :release, :documents, :bytes, :waits, :passed, :progress, :words);
