UPDATE delivery SET state = :state, tries = :tries, due = :due, answer = :answer
 WHERE notification = :number AND target = :target;
