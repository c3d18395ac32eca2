-- The first of a digest is as good as the others.
INSERT OR IGNORE INTO capture (key, batch, position) VALUES (:key, :batch, :position);
