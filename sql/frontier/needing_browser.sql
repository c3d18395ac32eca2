-- How many pages of each host show little until their scripts run.
SELECT domain, count(*) AS pages
  FROM url
 WHERE state = 'done' AND embedded = 0 AND instr(',' || note || ',', ',' || :needs_browser || ',')
 GROUP BY domain ORDER BY domain;
