SELECT status, note, count(*) AS number, min(url) AS first FROM capture
 WHERE content IN ('', 'gone') OR cut = 0
 GROUP BY status, note
 ORDER BY number DESC, status, note;
