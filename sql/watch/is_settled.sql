SELECT EXISTS (SELECT 1 FROM item WHERE url = :url AND (captured = 1 OR tries >= :most));
