SELECT id FROM body WHERE page = :page AND blob = :blob AND url = :url;
