-- The same version in two crawls of an import has one form: that of the crawl whose name is first.
INSERT OR IGNORE INTO form (url, content, kind, part)
SELECT :url, :content, kind, id FROM part WHERE id = :part;
