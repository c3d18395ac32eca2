-- Domains found by links, whatever became of their URLs, but for those of the start URLs.
SELECT DISTINCT domain FROM url
 WHERE state <> 'refused' AND kind <> 'robots' AND domain NOT IN (SELECT domain FROM url WHERE kind = 'seed');
