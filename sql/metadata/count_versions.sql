SELECT count(*) AS versions FROM version;
