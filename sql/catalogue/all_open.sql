-- Whether every record of a capture is released, and never closed: then nothing is hidden by records.
SELECT NOT EXISTS (SELECT 1 FROM record WHERE state NOT IN ('released', 'empty') OR closedFor <> '');
