SELECT * FROM revisit ORDER BY time, fraction, source, ordinal;
