SELECT batch, position, size, status, mime, content FROM body WHERE key = :key;
