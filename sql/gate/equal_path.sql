-- A further term of view.sql.
   AND document.path = (SELECT wanted.path FROM temp.wanted)
