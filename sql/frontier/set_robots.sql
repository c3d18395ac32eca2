INSERT OR REPLACE INTO robots (url, status, body, fetched) VALUES (:url, :status, :body, :fetched);
