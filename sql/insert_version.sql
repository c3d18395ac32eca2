INSERT INTO version (document, domain, seq_from, seq_until, mimeType, title, createTime)
SELECT id, :domain, :seq, 9223372036854775807, :mimeType, :title, :createTime FROM document WHERE url = :url;
