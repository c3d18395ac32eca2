-- The commit that the database is made from.
SELECT oid FROM state;
