INSERT OR REPLACE INTO fact (name, value) VALUES (:name, :value);
