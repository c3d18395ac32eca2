-- A page that is known to be shown, or was shown, stays as it is.
INSERT INTO view (id, state) VALUES (:id, 'waiting') ON CONFLICT (id) DO NOTHING;
