-- The newest record of each publication whose files were counted by extension.
SELECT max(id) FROM record INDEXED BY record_by_extension WHERE extensions = 1 GROUP BY publication ORDER BY publication;
