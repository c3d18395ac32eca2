DELETE FROM condition WHERE kind = :kind AND subject = :subject;
