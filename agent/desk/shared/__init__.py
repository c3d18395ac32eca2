"""What the requests of a desk share, and a request with the person who makes it.

Public: `desk` (made once), `visit` (a request), `opened` (the archive as staff see it). Imports archive, gate,
webarcfs.room, agent's service, and desk's limits, forms and login.
"""
