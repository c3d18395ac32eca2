"""What the reading room and the desk stand on: listeners, connections, processes, threads, access log, languages.

Public: all modules. It knows no page of either program.
"""
