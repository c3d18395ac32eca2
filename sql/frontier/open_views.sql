SELECT count(*) FROM view WHERE state IN ('waiting', 'showing');
