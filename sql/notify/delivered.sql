DELETE FROM delivery WHERE notification = :number AND target = :target;
