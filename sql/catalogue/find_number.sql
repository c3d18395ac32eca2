SELECT id FROM record WHERE number = :number;
