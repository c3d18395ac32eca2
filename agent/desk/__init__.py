"""The desk: the curators' pages of an archive in a browser, over the functions of the commands.

Public: `forms` (what a browser sent, and its bounds), `views` (rows and fields that templates share), `login` (who
asks: passwords, sessions, tokens of forms; nothing but hashes is written to disk), `visit` (a request, and what
requests share).
`theme/` has templates and languages, `pages/` the pages and what their forms do, `server/` the table of routes and the
process. The room never imports the desk. Needs the extra `desk`.
"""
