-- Pages that a crawl knew and did not ask for, by the word for why; and whether a redirect led to them.
SELECT note, kind = 'redirect' AS is_redirect, count(*) AS urls
  FROM url
 WHERE kind NOT IN ('robots', 'sitemap') AND state = 'refused' AND embedded = 0 AND note <> 'too-big'
 GROUP BY note, is_redirect;
