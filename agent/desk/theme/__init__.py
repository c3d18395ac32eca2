"""The look of the desk: the room's, with templates, style, a small script and texts of its own.

Public: `desk_look` (made once, safe for any thread), `words` (what states, steps and settings are called), `help_texts`
(what the fields of a record are for). `templates/`, `static/` and `locale/` have no code. Imports archive, the room's
look, and desk's views, visit and login.
"""
