SELECT batch, position FROM capture WHERE key = :key;
