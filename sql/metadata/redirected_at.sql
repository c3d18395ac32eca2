-- The target of a URL at :seq.
SELECT redirect.target
  FROM domain JOIN redirect ON redirect.domain = domain.id
 WHERE domain.name = :domain AND redirect.url = :url AND redirect.seq_from <= :seq AND redirect.seq_until > :seq;
