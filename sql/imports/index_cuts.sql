CREATE INDEX IF NOT EXISTS capture_cut ON capture (crawl, domain, cut, url, id);
