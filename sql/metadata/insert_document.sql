INSERT OR IGNORE INTO document (domain, url, path, surt) VALUES (:domain, :url, :path, :surt);
