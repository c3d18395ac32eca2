SELECT mime, count(*) AS documents FROM url WHERE result IN ('added', 'changed', 'unchanged') GROUP BY mime ORDER BY mime;
