UPDATE url SET state = 'refused', status = :status, note = :note
 WHERE state = 'waiting' AND domain = :domain AND kind = 'sitemap';
