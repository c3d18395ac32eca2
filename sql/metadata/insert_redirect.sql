INSERT INTO redirect (domain, url, path, surt, seq_from, seq_until, stored, status, target, captureTime)
VALUES (:domain, :url, :path, :surt, :seq, :next, :seq, :status, :target, :captureTime);
