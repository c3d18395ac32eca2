UPDATE url SET expanded = :depth WHERE id = :id;
