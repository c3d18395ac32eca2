-- The columns that links to documents need; the user's condition and order follow (/Cl-6/).
SELECT commitTag, path FROM metadata
