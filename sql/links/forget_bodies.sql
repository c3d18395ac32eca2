-- Triggers remove the rows that only these bodies refer to.
DELETE FROM body WHERE page IN (SELECT page.id FROM page JOIN domain ON domain.id = page.domain WHERE domain.name = :name);
