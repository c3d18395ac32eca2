-- A snapshot :seq is inserted before :next: the versions at this path that are valid in both, as insert_version.sql takes
-- them, so that a second part begins at :next.
SELECT version.*, :next AS seq, version.seq_until AS next, document.url AS url, document.path AS path
  FROM document
  JOIN version ON version.document = document.id
 WHERE document.path = :path AND version.seq_from < :seq AND version.seq_until > :next;
