CREATE INDEX IF NOT EXISTS part_url ON part (url, time, id);
