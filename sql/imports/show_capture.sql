UPDATE found SET content = :new, note = note || CASE note WHEN '' THEN '' ELSE ',' END || :word WHERE id = :id;
