-- What links to documents need of them; the user's condition and order follow (/Cl-6/).
SELECT commitTag, path FROM metadata
