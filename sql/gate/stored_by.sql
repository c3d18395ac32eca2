-- A further term of view.sql: versions that a publication stored, as far as the reader may see that crawl; else those of
-- which the first open crawl is of it, or a closed one where no open one has them.
   AND snapshot.domain IN (SELECT own.domain FROM temp.reader_snapshot AS own
                            WHERE own.publication = (SELECT wanted.publication FROM temp.wanted))
   AND (SELECT wanted.publication FROM temp.wanted) = coalesce(
           (SELECT storing.publication
              FROM temp.reader_snapshot AS storing
             WHERE storing.domain = version.domain AND storing.seq = version.stored AND NOT storing.closed),
           (SELECT first.publication
              FROM temp.reader_snapshot AS first
             WHERE first.domain = version.domain AND first.seq >= version.seq_from AND first.seq < version.seq_until
               AND (first.seen = '' OR saw(domain.name, first.seq, first.publication, first.seen, document.path,
                                           version.blob, version.stored))
             ORDER BY first.closed, first.seq
             LIMIT 1))
