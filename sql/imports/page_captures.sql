SELECT id, name, time, content FROM found WHERE url = :url AND arc <> '' AND content <> '' ORDER BY time, id;
