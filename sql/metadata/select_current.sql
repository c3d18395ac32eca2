-- The documents in the newest state of a domain.
SELECT *
  FROM metadata
 WHERE commitTag = (SELECT snapshot.commitTag
                      FROM domain
                      JOIN snapshot ON snapshot.domain = domain.id
                     WHERE domain.name = :name
                     ORDER BY snapshot.seq DESC
                     LIMIT 1);
