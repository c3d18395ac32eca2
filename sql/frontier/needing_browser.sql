-- How many pages of each host show little until their scripts run, and were not shown by a browser.
SELECT domain, count(*) AS pages
  FROM url
 WHERE state = 'done' AND embedded = 0 AND instr(',' || note || ',', ',' || :needs_browser || ',')
   AND NOT instr(',' || note || ',', ',' || :rendered || ',')
 GROUP BY domain ORDER BY domain;
