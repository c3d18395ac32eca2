-- The documents of a domain that a server did not send, since they did not change.
SELECT id, url, arc FROM url WHERE domain = :domain AND arc <> '' AND status = 304;
