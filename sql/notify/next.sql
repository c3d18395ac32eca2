-- The first notification that is due for a target. A time too far ahead is of a clock that was set back since.
SELECT n.number, n.content, d.tries
  FROM delivery AS d JOIN notification AS n ON n.number = d.notification
 WHERE d.target = :target AND d.state = 'waiting' AND (d.due <= :at OR d.due > :latest)
 ORDER BY n.number LIMIT 1;
