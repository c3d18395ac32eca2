INSERT INTO url (id, url, domain) VALUES (?, ?, ?);
