-- Bodies with the same key are equal: the first one stays.
INSERT OR IGNORE INTO capture (key, batch, position) VALUES (:key, :batch, :position);
