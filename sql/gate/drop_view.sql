DROP VIEW temp.metadata;
