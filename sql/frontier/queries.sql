SELECT coalesce((SELECT urls FROM query WHERE path = :path), 0);
