UPDATE url SET result = '' WHERE domain = :domain AND arc <> '' AND result <> '';
