"""The desk: the curators' pages of an archive in a browser, over the functions of the commands.

Public: `limits`, `forms` (what a browser sent), `ticks` (of long lists), `views` (what templates show). `login/` says
who asks, `shared/` has what requests share, `look/` templates and languages, `pages/` the pages and what they do,
`preview/` shows what is not released, `server/` the table of routes and the process. Imports every other folder of
agent but commands, and webarcfs.room, whose server and look it uses; the room never imports the desk. Needs the extra
`desk`.

Who asks: persons of people.toml by password or by a trusted proxy, their sessions, and the tokens of forms.

Public: `passwords`, `guesses`, `sessions`, `tokens`, `persons`. Nothing is written to disk but hashes in people.toml.
Imports archive, gate and desk's limits.

What the requests of a desk share, and a request with the person who makes it.

Public: `desk` (made once), `visit` (a request), `opened` (the archive as staff see it). Imports archive, gate,
webarcfs.room, agent's service, and desk's limits, forms and login.
"""
