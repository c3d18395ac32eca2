"""The processes of `webarc serve`: the supervisor, its workers, and the options that they take.

Public: `supervisor.serve`, `options`, `checks` for the command; `app` for whoever makes what is served. The supervisor
imports nothing that reads an archive.
"""
