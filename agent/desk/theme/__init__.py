"""The look of the desk: the room's, with templates, style and small scripts of its own.

Public: `desk_rendering` (made once, safe for any thread), `words` (what states, steps, settings and fields are called,
and what they are for). `templates/` and `static/` have no code.
"""
