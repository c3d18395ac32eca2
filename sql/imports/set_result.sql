UPDATE capture SET result = :result, note = :note, mime = :mime WHERE id = :id;
