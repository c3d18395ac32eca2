-- The URLs of a domain that a server answered otherwise than by a redirect: of those, redirects may end.
SELECT url FROM url WHERE domain = :domain AND state = 'done' AND kind <> 'robots' AND target = '';
