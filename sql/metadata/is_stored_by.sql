-- Whether the version of the document at :path in the snapshot :seq was stored by a crawl of :publication.
SELECT 1
  FROM document
  JOIN version             ON version.document = document.id
  JOIN snapshot AS storing ON storing.domain = version.domain AND storing.seq = version.stored
 WHERE document.path = :path AND version.seq_from <= :seq AND version.seq_until > :seq
   AND storing.publication = :publication
 LIMIT 1;
