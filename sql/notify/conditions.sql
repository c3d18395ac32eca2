SELECT kind, subject, since, told, mark, text, job, record FROM condition ORDER BY kind, subject;
