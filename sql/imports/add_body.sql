-- Bodies with the same key are equal: the first one stays.
INSERT OR IGNORE INTO body (key, batch, position, size, status, mime, content)
VALUES (:key, :batch, :position, :size, :status, :mime, :content);
