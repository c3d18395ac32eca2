SELECT id FROM page WHERE path = :path;
