-- A further term of view.sql.
   AND snapshot.commitTag = (SELECT wanted.commitTag FROM temp.wanted)
