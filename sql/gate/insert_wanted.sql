INSERT INTO temp.wanted (url, path, domain, commitTag, publication)
VALUES (:url, :path, :domain, :commitTag, :publication);
