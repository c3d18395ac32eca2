SELECT status, body, fetched FROM robots WHERE url = :url;
