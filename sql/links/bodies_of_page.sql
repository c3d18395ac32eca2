-- The bodies of the page at :path and the snapshots that have each, oldest first. A blob of two ids is that of a page and
-- of the DOM that a browser showed of it.
SELECT version.seq_from, version.seq_until, version.body, length(body.blob) > 20
  FROM page
 CROSS JOIN version ON version.page = page.id
 CROSS JOIN body    ON body.id = version.body
 WHERE page.path = :path
 ORDER BY version.seq_from;
