"""What replay decides: which state answers a URL, where references lead, which headers go along. No handlers.

Public: `states`, `targets`, `rewriting`, `headers`, `ranges`, `reader_token`; pywb's engine beside them. Any thread may
call them. Imports archive, content, warc, gate, and of room/: wayback.

pywb as the engine that runs the scripts of archived pages: its process, and what stands between it and browsers.

pywb is a program of its own, in an environment of its own; nothing here imports it. Public: `process.Pywb` (of the
supervisor, with a thread of its own), `proxy.PywbProxy` (an ASGI app of each worker). guard.js is ours; it runs in
archived pages before their scripts. Imports archive and, of room/, limits and replay.

The URLs and formats of web archives: replay URLs, Memento, TimeMaps, CDX, WARC records. All pure.

Public: `replay_url` reads and writes the URLs below `/web/`, `/timemap/` and `/diff/`, `timestamps` their digits;
`memento` chooses mementos and makes headers (RFC 7089); `timemap` lists the mementos of a URL; `cdx_question` and `cdx`
speak the dialect of the Wayback Machine's CDX server; `availability` answers as its availability API; `warc_record`
makes a WARC record of a capture. The time of a capture is always that of the first visible snapshot that has it, in
seconds (UTC). Imports archive.model, warc and gate.visible_captures.
"""
