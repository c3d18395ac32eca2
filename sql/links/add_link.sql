-- A page of very many links comes in portions.
INSERT INTO link (body, reference, times) VALUES (?, ?, ?)
    ON CONFLICT (body, reference) DO UPDATE SET times = times + excluded.times;
