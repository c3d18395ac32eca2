UPDATE cut SET outcome = :outcome WHERE crawl = :crawl AND domain = :domain AND number = :number;
