-- Triggers remove what only these had.
DELETE FROM body WHERE page IN (SELECT page.id FROM page JOIN domain ON domain.id = page.domain WHERE domain.name = :name);
