SELECT outcome FROM cut WHERE crawl = :crawl AND outcome <> '' ORDER BY domain, number;
