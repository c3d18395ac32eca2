SELECT 1 FROM snapshot WHERE commitTag = :commitTag;
