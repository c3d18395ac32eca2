-- How many records publications have, and the time of the newest; none of one without records.
SELECT publication, count(*), max(date)
  FROM record
 WHERE publication IN (SELECT value FROM json_each(:names)) AND state <> 'discarded'
 GROUP BY publication;
