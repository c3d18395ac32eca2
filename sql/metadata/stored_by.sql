-- A further term of origin_view.sql: versions that a publication stored.
   AND snapshot.domain IN (SELECT own.domain FROM main.snapshot AS own
                            WHERE own.publication = (SELECT wanted.publication FROM temp.wanted))
   AND EXISTS (SELECT 1 FROM main.snapshot AS storing
                WHERE storing.domain = version.domain AND storing.seq = version.stored
                  AND storing.publication = (SELECT wanted.publication FROM temp.wanted))
