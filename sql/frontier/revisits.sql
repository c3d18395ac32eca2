SELECT * FROM revisit ORDER BY time, id;
