-- The redirects of a domain that can be kept, in the order in which their URLs were found.
SELECT id, url, status, target, captured, note FROM url
 WHERE domain = :domain AND target <> '' AND length(target) <= :longest AND length(url) <= :longest
   AND state = 'done' AND kind <> 'robots' AND status IN (301, 302, 303, 307, 308)
 ORDER BY id;
