INSERT OR IGNORE INTO met_redirect (url) SELECT value FROM json_each(:urls);
