INSERT INTO crawl (number, name, first, last) VALUES (:number, :name, :first, :last);
