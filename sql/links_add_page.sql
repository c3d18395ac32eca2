INSERT INTO page (domain, path) VALUES (:domain, :path) ON CONFLICT DO NOTHING;
