UPDATE url SET arc = :arc WHERE id = :id;
