INSERT OR REPLACE INTO condition (kind, subject, since, told, mark, text, job, record)
VALUES (:kind, :subject, :since, :told, :mark, :text, :job, :record);
