-- After a kill: no page is being shown.
UPDATE view SET state = 'waiting' WHERE state = 'showing';
