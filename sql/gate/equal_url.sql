-- A further term of view.sql.
   AND document.url = (SELECT wanted.url FROM temp.wanted)
