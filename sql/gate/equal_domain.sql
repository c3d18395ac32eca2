-- A further term of view.sql.
   AND domain.name = (SELECT wanted.domain FROM temp.wanted)
