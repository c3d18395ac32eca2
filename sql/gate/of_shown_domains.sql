-- A further term of view.sql: documents of the domains whose snapshots are in reader_snapshot.
   AND snapshot.domain IN (SELECT shown.domain FROM temp.reader_snapshot AS shown)
