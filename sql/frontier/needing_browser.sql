-- How many pages of each host show little until their scripts run, and are none that a browser shows or showed.
SELECT domain, count(*) AS pages
  FROM url
 WHERE state = 'done' AND embedded = 0 AND instr(',' || note || ',', ',' || :needs_browser || ',')
   AND id NOT IN (SELECT id FROM view)
 GROUP BY domain ORDER BY domain;
