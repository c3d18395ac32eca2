UPDATE part SET url = :target WHERE url = :url;
