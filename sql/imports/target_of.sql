SELECT target FROM found WHERE url = :url AND target <> '' ORDER BY time, id LIMIT 1;
