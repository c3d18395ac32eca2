INSERT OR REPLACE INTO job (key, value) VALUES (:key, :value);
