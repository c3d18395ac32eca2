UPDATE url SET state = 'failed', status = :status, note = :note
 WHERE state = 'waiting' AND domain = :domain;
