-- How many records each state has.
SELECT state, count(*) FROM record GROUP BY state;
