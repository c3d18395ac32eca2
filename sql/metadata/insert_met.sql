INSERT INTO met (domain, kind, block, seq, base, times) VALUES (:domain, :kind, :block, :seq, :base, :times);
