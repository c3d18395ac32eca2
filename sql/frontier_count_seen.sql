SELECT count(*) AS seen
  FROM (SELECT arc FROM url WHERE domain = :domain AND arc <> '' AND result IN ('added', 'changed', 'unchanged')
         UNION
        SELECT arc FROM held WHERE domain = :domain);
