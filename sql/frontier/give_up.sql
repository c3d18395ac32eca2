-- Refuses all URLs that are still to be fetched.
UPDATE url SET state = 'refused', status = :status, note = :note
 WHERE state IN ('waiting', 'fetching') AND (:domain = '' OR domain = :domain);
