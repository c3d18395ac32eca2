UPDATE capture SET cut = 0, note = CASE note WHEN '' THEN :note ELSE note || ',' || :note END WHERE id = :id;
