"""The URLs and formats of web archives: replay URLs, Memento, TimeMaps, CDX, WARC records. All pure.

Public: `replay_url` reads and writes the URLs below `/web/`, `/timemap/` and `/diff/`, `timestamps` their digits;
`memento` chooses mementos and makes headers (RFC 7089); `timemap` lists the mementos of a URL; `cdx_question` and `cdx`
speak the dialect of the Wayback Machine's CDX server; `availability` answers as its availability API; `warc_record`
makes a WARC record of a capture. The time of a capture is always that of the first visible snapshot that has it, in
seconds (UTC). Imports archive.model, warc and gate.visible_captures.
"""
