-- Gives up what waits for a target that nobody names any more.
UPDATE delivery SET state = 'given-up', due = :at, answer = :answer WHERE target = :target AND state = 'waiting';
