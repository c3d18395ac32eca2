UPDATE url
   SET state = :state, tries = tries + :tried, not_before = :not_before, status = :status, note = :note,
       position = :position, size = :size, mime = :mime, digest = :digest, captured = :captured, arc = :arc,
       target = :target, links = :links
 WHERE id = :id;
