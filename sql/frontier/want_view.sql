-- A page that is known to be shown, or was shown, stays as it is.
INSERT INTO view (id, domain, state) VALUES (:id, :domain, 'waiting') ON CONFLICT (id) DO NOTHING;
