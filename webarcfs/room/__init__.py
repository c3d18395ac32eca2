"""The reading room: an archive in a browser, for readers. It never writes.

Public: `views` (the values that templates show), `visit` (a request), `services`, `limits`, `answering`. `wayback/` has
the URLs and formats of the field, `replay/` what replay decides, `look/` templates and languages, `pages/` the room's
own pages, `mementos/` answers about URLs of the past, `server/` processes and listeners. Handlers run in the threads of
a worker. Imports archive, content, warc, gate and search; needs the extra `room`.
"""
