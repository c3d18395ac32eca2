SELECT target.* FROM url JOIN url AS target ON target.url = substr(url.target, 1, instr(url.target || '#', '#') - 1) WHERE url.id = :id;
