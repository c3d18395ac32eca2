SELECT DISTINCT domain FROM url WHERE state IN ('done', 'failed') AND kind <> 'robots' ORDER BY domain;
