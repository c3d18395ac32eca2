UPDATE crawl SET done = 1 WHERE number = :number;
