-- Adds a way by which a notification is delivered, unless it is known.
INSERT OR IGNORE INTO delivery (notification, target, state, tries, due, answer)
SELECT number, :target, 'waiting', 0, :due, '' FROM notification WHERE id = :id;
