UPDATE view
   SET state = :state, words = :words, title = :title, shown = :shown, html_at = :html_at, html_size = :html_size,
       text_at = :text_at, text_size = :text_size, picture_at = :picture_at, picture_size = :picture_size,
       requests = :requests, refused = :refused, missed = :missed
 WHERE id = :id;
