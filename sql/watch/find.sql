SELECT captured, tries FROM item WHERE url = :url;
