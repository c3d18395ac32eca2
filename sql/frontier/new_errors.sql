-- The error pages of a domain that are new in their ARCs.
SELECT id, url, arc, result FROM url
 WHERE domain = :domain AND status BETWEEN 400 AND 499 AND arc <> '' AND result IN ('added', 'changed');
