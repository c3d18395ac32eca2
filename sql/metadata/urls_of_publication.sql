-- The URLs of the documents and redirects that the crawls of a publication stored; error pages are none of them.
WITH own AS (SELECT domain, seq FROM snapshot WHERE publication = :publication)
SELECT document.url FROM version JOIN document ON document.id = version.document
 WHERE version.domain IN (SELECT domain FROM own) AND (version.domain, version.stored) IN (SELECT domain, seq FROM own)
   AND version.status NOT BETWEEN 400 AND 499
 UNION
SELECT url FROM redirect
 WHERE domain IN (SELECT domain FROM own) AND (domain, stored) IN (SELECT domain, seq FROM own);
