INSERT INTO cut (crawl, domain, number, begin, time, is_last)
VALUES (:crawl, :domain, :number, :begin, 0, :is_last);
