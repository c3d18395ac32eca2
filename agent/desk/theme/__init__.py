"""The look of the desk: templates, style and small scripts over those of `webarcfs.web`.

Public: `desk_rendering` (made once, safe for any thread), `words` (what states, steps, settings and fields are called,
and what they are for). `templates/` and `static/` have no code.
"""
