-- How many records are open to readers by the time :open.
SELECT count(*) FROM record INDEXED BY record_released WHERE shown = 1 AND closedUntil <= :open;
