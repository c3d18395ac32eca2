CREATE INDEX IF NOT EXISTS found_url ON found (url, time);
