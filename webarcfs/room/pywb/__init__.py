"""pywb as the engine that runs the scripts of archived pages: its process, and what stands between it and browsers.

pywb is a program of its own, in an environment of its own; nothing here imports it. Public: `process.Pywb` (of the
supervisor, with a thread of its own), `proxy.PywbProxy` (an ASGI app of each worker). guard.js is ours; it runs in
archived pages before their scripts. Imports archive and, of room/, limits and replay.
"""
