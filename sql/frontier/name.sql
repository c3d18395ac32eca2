-- Notes as what a page names a URL. A sheet that a page in quirks mode names as well is read whatever its type. What was
-- read before it was named is read again.
UPDATE url SET named = :named,
               expanded = CASE WHEN state = 'done' AND expanded >= 0 THEN depth + 1 ELSE expanded END
 WHERE url = :url AND (named = '' OR (named = 'sheet' AND :named = 'quirks-sheet'));
