SELECT count(*) FROM url WHERE page = :page AND page > 0 AND state <> 'refused';
