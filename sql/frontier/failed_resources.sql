-- Resources of pages that did not come, host by host: of a host that has no pages, one that was there before is lost.
SELECT domain, url FROM url WHERE state = 'failed' AND kind <> 'robots' AND embedded > 0 ORDER BY domain, id;
