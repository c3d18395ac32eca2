UPDATE url
   SET result = :result, mime = CASE WHEN :mime = '' THEN mime ELSE :mime END,
       note = CASE WHEN :note = '' THEN note WHEN note = '' THEN :note ELSE note || ',' || :note END
 WHERE id = :id;
