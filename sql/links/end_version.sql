UPDATE version SET seq_until = :seq WHERE page = :page AND seq_from = :seq_from;
