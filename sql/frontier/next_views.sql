SELECT url.* FROM view JOIN url USING (id) WHERE view.state = 'waiting' ORDER BY view.id LIMIT :most;
