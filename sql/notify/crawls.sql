SELECT subject, report, captured FROM crawl;
