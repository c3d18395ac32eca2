-- A user's query (/Cl-6/); the condition and order follow.
SELECT * FROM metadata
