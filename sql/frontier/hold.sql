INSERT OR IGNORE INTO held (domain, arc) VALUES (:domain, :arc);
