-- Lets what was given up wait once more.
UPDATE delivery SET state = 'waiting', tries = 0, due = :at WHERE state = 'given-up';
