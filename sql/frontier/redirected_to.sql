SELECT target.* FROM url JOIN url AS target ON target.url = url.target WHERE url.id = :id;
