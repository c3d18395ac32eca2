DELETE FROM notification WHERE NOT EXISTS (SELECT 1 FROM delivery WHERE notification = notification.number);
