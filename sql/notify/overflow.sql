-- Gives up the oldest of a target where more than :most wait.
UPDATE delivery SET state = 'given-up', due = :at, answer = :answer
 WHERE target = :target AND state = 'waiting' AND notification IN (
       SELECT notification FROM delivery WHERE target = :target AND state = 'waiting'
        ORDER BY notification DESC LIMIT -1 OFFSET :most);
