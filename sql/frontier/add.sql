-- Adds a found URL. A known URL changes only if the new path to it is shorter, has fewer resources in a row, or accepts it
-- after a refusal; or if it was fetched only because a robots.txt redirects to it (the robots.txt itself is no page), or
-- only as a sitemap, which it was not: then it is fetched anew.
-- A path that is longer and has fewer resources in a row, such as a link to what was known as a frame, gives its right
-- alone, and the links of the page are added again.
-- A page that a sitemap listed becomes one that is linked, also by a longer path; one that is linked never becomes one that
-- is listed. A sitemap keeps being one; `found_on` says that a page names it.
INSERT INTO url (url, domain, kind, depth, hops, inner, embedded, page, found_on, state, status, note)
VALUES (:url, :domain, :kind, :depth, :hops, :inner, :embedded, :page, :found_on, :state, :status, :note)
ON CONFLICT (url) DO UPDATE
   SET depth    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN excluded.depth
                       ELSE min(depth, excluded.depth) END,
       kind     = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN excluded.kind
                       WHEN excluded.kind = 'listed' OR (kind = 'sitemap' AND state <> 'refused') THEN kind
                       WHEN kind = 'listed' OR state = 'refused' OR excluded.depth < depth THEN excluded.kind
                       ELSE kind END,
       hops     = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' OR excluded.depth < depth
                       THEN excluded.hops ELSE hops END,
       inner    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' OR excluded.depth < depth
                       THEN excluded.inner ELSE inner END,
       found_on = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' OR excluded.depth < depth
                       THEN coalesce(excluded.found_on, found_on) ELSE coalesce(found_on, excluded.found_on) END,
       embedded = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.embedded
                       ELSE min(embedded, excluded.embedded) END,
       page     = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' OR excluded.embedded < embedded
                       THEN excluded.page ELSE page END,
       expanded = CASE WHEN expanded >= 0 AND excluded.embedded < embedded
                       THEN max(expanded, min(depth, excluded.depth) + 1) ELSE expanded END,
       tries    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN 0 ELSE tries END,
       status   = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.status
                       ELSE status END,
       note     = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.note
                       ELSE note END,
       target   = CASE WHEN kind = 'robots' OR note = 'no-sitemap' THEN '' ELSE target END,
       state    = CASE WHEN kind = 'robots' OR note = 'no-sitemap' OR state = 'refused' THEN excluded.state
                       ELSE state END
 WHERE CASE kind
       WHEN 'seed' THEN 0
       WHEN 'robots' THEN excluded.state = 'waiting' AND state IN ('done', 'failed') AND url NOT LIKE '%/robots.txt'
       ELSE excluded.depth < depth AND (excluded.state = 'waiting' OR state = 'refused' OR excluded.embedded <= embedded)
         OR excluded.state = 'waiting' AND (state = 'refused' OR excluded.embedded < embedded)
         OR excluded.kind IN ('link', 'redirect', 'requisite')
            AND (kind = 'listed' OR (kind = 'sitemap' AND (found_on IS NULL OR note = 'no-sitemap'))) END;
