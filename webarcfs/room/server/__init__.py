"""The processes of `webarc serve`: what they serve, and the options that they take.

Public: `serving.serve`, `options`, `checks` for the command; `app` for whoever makes what is served. The parent of the
workers imports nothing that reads an archive.
"""
