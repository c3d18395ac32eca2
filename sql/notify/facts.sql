SELECT name, value FROM fact;
