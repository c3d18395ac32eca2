"""The room's own pages: lists of snapshots, records, comparisons, search, the versions of a URL, notices.

Public: each module has functions that answer a `Visit`; `server/app.py` has their routes. Any thread of a worker may
call them, each with its own services. They read the archive through the gate, and never write. Imports archive,
content, gate, search, and of room/: wayback, replay, look.
"""
