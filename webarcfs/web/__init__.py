"""What the reading room and the desk stand on: listeners, connections, processes, threads, rendering, languages.

Public: all modules. It knows no page of either program. `templates/`, `static/` and `locale/` have no code.
"""
