-- What is still to be fetched will not be.
UPDATE url SET state = 'refused', status = :status, note = :note
 WHERE state IN ('waiting', 'fetching') AND (:domain = '' OR domain = :domain);
