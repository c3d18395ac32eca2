SELECT id FROM met_redirect WHERE url = :url;
