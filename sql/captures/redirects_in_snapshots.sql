-- Where URLs led in snapshots: of each place of :places (number, domain, URL, snapshot) the redirect there.
SELECT wanted.value ->> 0, redirect.url, redirect.path, redirect.surt, redirect.seq_from, redirect.seq_until,
       redirect.stored, redirect.captureTime, redirect.status, '', '', '', '', 0, x'', redirect.target,
       coalesce(snapshot.publication, ''), 0
  FROM json_each(:places) AS wanted
  JOIN domain ON domain.name = wanted.value ->> 1
  JOIN redirect ON redirect.domain = domain.id AND redirect.url = wanted.value ->> 2 AND redirect.seq_from = (
       SELECT max(began.seq_from) FROM redirect AS began
        WHERE began.domain = domain.id AND began.url = wanted.value ->> 2 AND began.seq_from <= wanted.value ->> 3)
  LEFT JOIN snapshot ON snapshot.domain = redirect.domain AND snapshot.seq = redirect.stored
 WHERE redirect.seq_until > wanted.value ->> 3;
