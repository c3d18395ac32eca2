-- A notification that is known already stays as it is.
INSERT OR IGNORE INTO notification (id, content) VALUES (:id, :content);
