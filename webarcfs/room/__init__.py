"""The reading room: an archive in a browser, for readers. It never writes.

Public: `views` (rows that templates share), `visit` (a request, and what it asks), `limits`, `answering`.
`replay/` has the URLs and formats of the field and what replay decides, `theme/` templates and languages, `pages/` the
handlers, `server/` processes and listeners. Handlers run in the threads of a worker. Needs the extra `room`.
"""
