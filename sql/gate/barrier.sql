-- The end of view.sql, after its further terms.
 LIMIT -1;
