-- Notes as what a page names a URL. A sheet that a page in quirks mode names as well is read whatever its type.
INSERT INTO named (id, named) SELECT id, :named FROM url WHERE url = :url
ON CONFLICT (id) DO UPDATE SET named = excluded.named WHERE named = 'sheet' AND excluded.named = 'quirks-sheet';
