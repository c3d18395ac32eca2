-- An existing reference keeps its id.
INSERT INTO reference (id, kind, target, text) VALUES (?, ?, ?, ?) ON CONFLICT (target, kind, text) DO NOTHING;
