-- Adds a found URL. A known URL changes only if the new path to it is shorter, or accepts it after a refusal; or if it
-- was fetched only because a robots.txt redirects to it (the robots.txt itself is no page).
INSERT INTO url (url, domain, kind, depth, hops, inner, found_on, state, status, note)
VALUES (:url, :domain, :kind, :depth, :hops, :inner, :found_on, :state, :status, :note)
ON CONFLICT (url) DO UPDATE
   SET depth    = CASE WHEN kind = 'robots' THEN excluded.depth ELSE min(depth, excluded.depth) END,
       kind     = excluded.kind,
       hops     = excluded.hops,
       inner    = excluded.inner,
       found_on = excluded.found_on,
       tries    = CASE WHEN kind = 'robots' THEN 0 ELSE tries END,
       status   = CASE WHEN kind = 'robots' OR state = 'refused' THEN excluded.status ELSE status END,
       note     = CASE WHEN kind = 'robots' OR state = 'refused' THEN excluded.note ELSE note END,
       state    = CASE WHEN kind = 'robots' OR state = 'refused' THEN excluded.state ELSE state END
 WHERE CASE kind
       WHEN 'seed' THEN 0
       WHEN 'robots' THEN excluded.state = 'waiting' AND state IN ('done', 'failed') AND url NOT LIKE '%/robots.txt'
       ELSE excluded.depth < depth OR (state = 'refused' AND excluded.state = 'waiting') END;
