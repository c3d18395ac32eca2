SELECT count(*) FROM cut WHERE crawl = :crawl AND outcome = '';
