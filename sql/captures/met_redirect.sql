-- The same of the redirect of a URL.
SELECT met_redirect.id, met.seq, met.base, met.times
  FROM met_redirect
  JOIN domain ON domain.name = :domain
  JOIN met    ON met.domain = domain.id AND met.kind = 1 AND met.block = met_redirect.id / 1024
 WHERE met_redirect.url = :name
 ORDER BY met.seq;
