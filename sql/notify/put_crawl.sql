INSERT OR REPLACE INTO crawl (subject, report, captured) VALUES (:subject, :report, :captured);
