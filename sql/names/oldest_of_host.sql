-- A page of the snapshots of :host from :since to :until, oldest first, behind :time.
SELECT snapshot.crawlTime, snapshot.domain, snapshot.seq, domain.name, snapshot.publication, snapshot.complete
  FROM domain
  JOIN snapshot ON snapshot.domain = domain.id
 WHERE domain.name = :host
   AND snapshot.crawlTime >= :since AND snapshot.crawlTime <= :until AND snapshot.crawlTime > :time
   AND (:publication = '' OR snapshot.publication = :publication)
 ORDER BY snapshot.crawlTime ASC
 LIMIT :limit;
