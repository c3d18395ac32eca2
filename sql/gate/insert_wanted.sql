INSERT INTO temp.wanted (url, path, domain, commitTag) VALUES (:url, :path, :domain, :commitTag);
