-- Whether the crawl has anything of a domain for the archive: a document, one that did not change, a redirect.
SELECT EXISTS (SELECT 1 FROM url WHERE domain = :domain AND arc <> '')
    OR EXISTS (SELECT 1 FROM url WHERE domain = :domain AND target <> '' AND state = 'done' AND kind <> 'robots');
