-- Hosts with pages that a crawl wanted and did not get for a reason that holds for more than one page, and the first of them:
-- what was left out or cut while it ran, what no robots.txt could be had for, what could not be read for links, or was not shown by a browser to its end.
SELECT domain, why, url FROM (
    SELECT domain, why, url, min(id)
      FROM (SELECT domain, url, id,
                   CASE WHEN state = 'refused' AND note IN (:left_out, :full) THEN note
                        WHEN state = 'failed' AND note = :robots_unavailable THEN note
                        ELSE (SELECT value FROM json_each(:unread) WHERE instr(',' || note || ',', ',' || value || ','))
                        END AS why
              FROM url WHERE kind <> 'robots' AND embedded = 0 AND note <> '')
     WHERE why IS NOT NULL
     GROUP BY domain, why)
 ORDER BY domain, why;
