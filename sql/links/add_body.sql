INSERT INTO body (page, blob, url) VALUES (:page, :blob, :url);
