-- What crawls are told by: the times of each name.
SELECT name, time, count(*) FROM capture WHERE domain <> '' GROUP BY name, time ORDER BY name, time;
