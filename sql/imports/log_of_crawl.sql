SELECT * FROM capture WHERE crawl = :crawl ORDER BY id;
