-- Domains with accepted pages, whatever the outcome, except the domains of the start URLs and the watched feed.
SELECT DISTINCT domain FROM url
 WHERE state <> 'refused' AND kind <> 'robots' AND embedded = 0
   AND domain NOT IN (SELECT domain FROM url WHERE kind IN ('seed', 'feed'));
