SELECT tries FROM item WHERE url = :url AND captured = 0;
