-- Adds a found URL. A known URL changes only if the new path to it is shorter, or accepts it after a refusal; or if it
-- was fetched only because a robots.txt redirects to it (the robots.txt itself is no page), or only as a sitemap, which
-- it was not: then it is fetched anew. A page that a sitemap listed becomes one that is linked, also by a longer path;
-- one that is linked never becomes one that is listed. A sitemap keeps being one; `found_on` says that a page names it.
INSERT INTO url (url, domain, kind, depth, hops, inner, found_on, state, status, note)
VALUES (:url, :domain, :kind, :depth, :hops, :inner, :found_on, :state, :status, :note)
ON CONFLICT (url) DO UPDATE
   SET depth    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN excluded.depth
                       ELSE min(depth, excluded.depth) END,
       kind     = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN excluded.kind
                       WHEN excluded.kind = 'listed' OR (kind = 'sitemap' AND state <> 'refused') THEN kind
                       ELSE excluded.kind END,
       hops     = CASE WHEN kind IN ('listed', 'sitemap') AND state <> 'refused' AND note <> 'no-sitemap'
                        AND excluded.depth >= depth THEN hops ELSE excluded.hops END,
       inner    = CASE WHEN kind IN ('listed', 'sitemap') AND state <> 'refused' AND note <> 'no-sitemap'
                        AND excluded.depth >= depth THEN inner ELSE excluded.inner END,
       found_on = CASE WHEN kind IN ('listed', 'sitemap') AND state <> 'refused' AND note <> 'no-sitemap'
                        AND excluded.depth >= depth THEN coalesce(found_on, excluded.found_on)
                       ELSE coalesce(excluded.found_on, found_on) END,
       tries    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN 0 ELSE tries END,
       status   = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.status
                       ELSE status END,
       note     = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.note
                       ELSE note END,
       state    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.state
                       ELSE state END
 WHERE CASE kind
       WHEN 'seed' THEN 0
       WHEN 'robots' THEN excluded.state = 'waiting' AND state IN ('done', 'failed') AND url NOT LIKE '%/robots.txt'
       ELSE excluded.depth < depth OR (state = 'refused' AND excluded.state = 'waiting')
            OR (excluded.kind IN ('link', 'redirect', 'requisite')
                AND (kind = 'listed' OR (kind = 'sitemap' AND (found_on IS NULL OR note = 'no-sitemap')))) END;
