UPDATE url SET note = CASE WHEN instr(',' || note || ',', ',' || :note || ',') THEN note WHEN note = '' THEN :note ELSE note || ',' || :note END WHERE id = :id;
