INSERT OR IGNORE INTO domain (name) VALUES (:name);
