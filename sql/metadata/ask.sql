-- What users ask (/Cl-6/); their condition and order follow.
SELECT url, mimeType, title, path, domain, crawlTime, createTime, commitTag, captureTime, status FROM metadata
