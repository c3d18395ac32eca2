SELECT value FROM job WHERE key = :key;
