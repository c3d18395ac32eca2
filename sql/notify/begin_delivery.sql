UPDATE delivery SET answer = 'it was being told' WHERE notification = :number AND target = :target;
