-- After texts went: what named them, in one sweep, so that no index has to be kept for it.
DELETE FROM naming WHERE text NOT IN (SELECT id FROM text);
