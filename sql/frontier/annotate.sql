UPDATE url SET note = CASE WHEN note = '' THEN :note ELSE note || ',' || :note END WHERE id = :id;
