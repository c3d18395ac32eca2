INSERT INTO page (domain, path) VALUES (:domain, :path);
