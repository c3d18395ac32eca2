SELECT name FROM domain ORDER BY name;
