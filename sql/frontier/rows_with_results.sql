SELECT id, result, note, mime FROM url WHERE result <> '' OR note <> '';
