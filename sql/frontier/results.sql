UPDATE url
   SET result = :result, nested = :nested, mime = CASE WHEN :mime = '' THEN mime ELSE :mime END,
       note = CASE WHEN :note = '' OR instr(note, :note) THEN note WHEN note = '' THEN :note ELSE note || ',' || :note END
 WHERE id = :id;
