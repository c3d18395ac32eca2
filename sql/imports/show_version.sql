UPDATE found
   SET content = :new, note = note || CASE note WHEN '' THEN '' ELSE ',' END || :word
 WHERE url = :url AND name = :name AND content = :content AND arc <> '';
