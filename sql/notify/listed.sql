-- What waits or was given up, oldest first.
SELECT n.id, n.content, d.target, d.state, d.tries, d.due, d.answer
  FROM delivery AS d JOIN notification AS n ON n.number = d.notification
 ORDER BY n.number, d.target LIMIT :most;
