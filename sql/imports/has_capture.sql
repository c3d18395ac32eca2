SELECT EXISTS (SELECT 1 FROM capture WHERE domain = :domain AND url = :url AND time = :time) AS known;
