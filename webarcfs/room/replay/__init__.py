"""The URLs and formats of web archives, and what replay decides: state, references, headers. No handlers.

Public: `replay_url` reads and writes the URLs below `/web/`, `/timemap/` and `/diff/`, with their digits; `memento`
chooses states and mementos, lists them and makes headers (RFC 7089); `cdx` speaks the dialect of the Wayback Machine's
CDX server. `memento`, `rewriting` and `headers` decide for a page. The time of a capture is always that of the first
visible snapshot that has it, in seconds (UTC). Any thread may call them.

pywb, the engine that runs the scripts of archived pages, is a program of its own, in an environment of its own; nothing
here imports it. `pywb_process.Pywb` is for the parent of the workers, with a thread of its own, `pywb_proxy.PywbProxy`
an ASGI app of each worker. guard.js is ours; it runs in archived pages before their scripts.
"""
