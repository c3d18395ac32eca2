-- The items that are to be asked for again: those first that were asked for the least.
SELECT url FROM item INDEXED BY item_waiting WHERE captured = 0 AND tries < :most ORDER BY tries, url LIMIT :number;
