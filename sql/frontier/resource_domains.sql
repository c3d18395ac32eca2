-- Domains with accepted resources of pages, except the domains of the start URLs.
SELECT DISTINCT domain FROM url
 WHERE state <> 'refused' AND kind <> 'robots' AND embedded > 0 AND domain NOT IN (SELECT domain FROM url WHERE kind = 'seed');
