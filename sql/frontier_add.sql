-- A URL was found. One that is known changes only if this way to it is shorter, or lets it in where it was refused.
INSERT INTO url (url, domain, kind, depth, hops, found_on, state, status, note)
VALUES (:url, :domain, :kind, :depth, :hops, :found_on, :state, :status, :note)
ON CONFLICT (url) DO UPDATE
   SET depth    = min(depth, excluded.depth),
       kind     = CASE WHEN kind = 'robots' THEN kind ELSE excluded.kind END,
       hops     = excluded.hops,
       found_on = excluded.found_on,
       status   = CASE WHEN state = 'refused' THEN excluded.status ELSE status END,
       note     = CASE WHEN state = 'refused' THEN excluded.note ELSE note END,
       state    = CASE WHEN state = 'refused' THEN excluded.state ELSE state END
 WHERE kind NOT IN ('seed', 'robots')
   AND (excluded.depth < depth OR (state = 'refused' AND excluded.state = 'waiting'));
