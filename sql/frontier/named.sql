-- As what a page names a URL, a style sheet or a manifest: where its type does not say so, it is read as that. Jobs of
-- older versions get the table when they are opened. A document that was read before it was named is read again.
CREATE TABLE IF NOT EXISTS named (
    id    INTEGER PRIMARY KEY REFERENCES url,
    named TEXT NOT NULL                     -- sheet, quirks-sheet, manifest
);

CREATE TRIGGER IF NOT EXISTS named_late AFTER INSERT ON named BEGIN
    UPDATE url SET expanded = depth + 1 WHERE id = new.id AND state = 'done' AND expanded >= 0;
END;
