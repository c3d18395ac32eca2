-- What is there already keeps its id.
INSERT INTO reference (id, kind, target, text) VALUES (?, ?, ?, ?) ON CONFLICT (target, kind, text) DO NOTHING;
