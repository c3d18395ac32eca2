-- An existing reference keeps its id.
INSERT INTO reference (id, kind, target, text, window) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (target, kind, text, window) DO NOTHING;
