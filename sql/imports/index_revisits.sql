CREATE INDEX IF NOT EXISTS revisit_url ON revisit (url, time);
