-- When a record that readers had seen was taken from them last.
SELECT max(updated) FROM record INDEXED BY record_gone WHERE gone = 1;
