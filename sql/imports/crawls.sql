SELECT number, name, first, last, done FROM crawl ORDER BY number;
