CREATE INDEX IF NOT EXISTS capture_url ON capture (domain, url, id);
