-- What the files have themselves waits no more.
DELETE FROM revisit
 WHERE source = 0 AND EXISTS (SELECT 1 FROM revisit AS own WHERE own.source > 0 AND own.url = revisit.url
                                 AND own.time = revisit.time AND own.digest = revisit.digest);
