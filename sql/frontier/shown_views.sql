-- The pages that a browser showed, or could not show, in the order in which they were to be shown.
SELECT url.url, view.state, view.words, view.shown, view.requests, view.refused, view.missed,
       view.picture_at >= 0 AS pictures
  FROM view JOIN url USING (id) ORDER BY view.id;
