INSERT OR REPLACE INTO seen (domain, arc, nested) VALUES (:domain, :arc, :nested);
