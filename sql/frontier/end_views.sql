-- Pages that no browser will show any more; the word says why.
UPDATE view SET state = 'failed', words = :word WHERE state IN ('waiting', 'showing');
