UPDATE url SET result = 'unchanged' WHERE domain = :domain AND arc <> '' AND result = '';
