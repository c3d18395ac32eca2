-- A page of the snapshots from :since to :until, newest first, before :time and :domain.
SELECT snapshot.crawlTime, snapshot.domain, snapshot.seq, domain.name, snapshot.publication, snapshot.complete
  FROM snapshot
  JOIN domain ON domain.id = snapshot.domain
 WHERE snapshot.crawlTime >= :since AND snapshot.crawlTime <= :until
   AND (snapshot.crawlTime, snapshot.domain) < (:time, :domain)
   AND (:publication = '' OR snapshot.publication = :publication)
 ORDER BY snapshot.crawlTime DESC, snapshot.domain DESC
 LIMIT :limit;
