"""The desk: the curators' pages of an archive in a browser, over the functions of the commands.

Public: `limits`, `forms` (what a browser sent), `ticks` (of long lists), `views` (what templates show). `login/` says
who asks, `shared/` has what requests share, `look/` templates and languages, `pages/` the pages and what they do,
`preview/` shows what is not released, `server/` the table of routes and the process. Imports every other folder of
agent but commands, and webarcfs.room, whose server and look it uses; the room never imports the desk. Needs the extra
`desk`.
"""
