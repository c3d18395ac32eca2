SELECT id FROM reference WHERE id > :last;
