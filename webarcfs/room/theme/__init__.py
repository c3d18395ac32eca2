"""The look of the room: templates, style sheets, and pictures.

Public: `rendering.Look` (made once in a worker, safe for any thread). `templates/` and `static/` have no code.
"""
