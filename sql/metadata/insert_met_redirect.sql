INSERT OR IGNORE INTO met_redirect (url) VALUES (:url);
