"""The processes of `webarc serve`: the supervisor, its workers, their listeners and connections, and their log.

Public: `supervisor.serve`, `options`, `checks` for the command; `app` for whoever makes what is served. The supervisor
imports nothing that reads an archive.
"""
