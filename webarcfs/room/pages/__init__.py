"""The room's own pages: lists of snapshots, records, comparisons, search, the versions of a URL, notices.

Public: each module has functions that answer a `Visit`; `server/app.py` has their routes. Any thread of a worker may
call them, each with its own services. They read the archive through the gate, and never write. Imports archive,
content, gate, search, and of room/: wayback, replay, look.

Answers about URLs of the past: archived pages and their frame, TimeGate, TimeMaps, CDX, WARC records.

Public: each module has functions that answer a `Visit`; `server/app.py` has their routes. Any thread of a worker may
call them, each with its own services. Imports archive, content, gate, and of room/: wayback, replay, look, pages.
"""
