-- How many pages a browser showed, or could not show, and what became of what they asked for; no row without any page.
SELECT sum(state = 'done') AS pages, sum(state = 'failed') AS failed, sum(requests) AS requests,
       sum(refused) AS refused, sum(missed) AS missed
  FROM view HAVING count(*) > 0;
