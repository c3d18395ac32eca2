-- A page with very many links is inserted in portions.
INSERT INTO link (body, reference, times) VALUES (?, ?, ?)
    ON CONFLICT (body, reference) DO UPDATE SET times = times + excluded.times;
