-- How many pages are in which state that a browser is to show, shows or showed.
SELECT state, count(*) AS pages FROM view GROUP BY state;
