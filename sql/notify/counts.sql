SELECT state, count(*) FROM delivery GROUP BY state;
