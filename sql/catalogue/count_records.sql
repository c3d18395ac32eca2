SELECT count(*) FROM record;
