-- How many records a publication has, and the time of the newest.
SELECT count(*), max(date) FROM record WHERE publication = :publication;
