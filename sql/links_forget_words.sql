DELETE FROM word WHERE id NOT IN (SELECT word FROM naming);
