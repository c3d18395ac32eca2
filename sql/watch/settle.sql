-- Records what became of an item in a crawl. A crawl that is resumed says it again, and counts once.
INSERT INTO item (url, captured, tries, job) VALUES (:url, :captured, :tries, :job)
ON CONFLICT (url) DO UPDATE
   SET captured = max(captured, excluded.captured),
       tries    = tries + CASE WHEN job = excluded.job THEN 0 ELSE excluded.tries END,
       job      = excluded.job;
