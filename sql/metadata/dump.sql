SELECT url, mimeType, title, path, domain, crawlTime, createTime, commitTag FROM metadata ORDER BY commitTag, path;
