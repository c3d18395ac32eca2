INSERT OR IGNORE INTO document (domain, url, path) VALUES (:domain, :url, :path);
