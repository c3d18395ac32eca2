INSERT INTO version (document, domain, seq_from, seq_until, mimeType, title, createTime)
SELECT id, :domain, :seq, :next, :mimeType, :title, :createTime FROM document WHERE url = :url;
