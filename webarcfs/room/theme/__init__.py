"""The look of the room: templates, style sheets, pictures, and the languages of its texts.

Public: `rendering.Look` (made once in a worker, safe for any thread), `language`. `templates/`, `static/` and `locale/`
have no code.
"""
