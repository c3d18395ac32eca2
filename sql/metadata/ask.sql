-- A user's query (/Cl-6/); the condition and order follow.
SELECT url, mimeType, title, path, domain, crawlTime, createTime, commitTag, captureTime, status FROM metadata
