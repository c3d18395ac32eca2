UPDATE url
   SET note = CASE WHEN instr(',' || note || ',', ',' || :word || ',') THEN note
                   WHEN note = '' THEN :word ELSE note || ',' || :word END
 WHERE id IN (SELECT id FROM view WHERE state IN ('waiting', 'showing'));
