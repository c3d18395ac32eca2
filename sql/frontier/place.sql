UPDATE url SET batch = :batch WHERE id = :id;
