"""The handlers of the room: lists, records, comparisons, search, the versions of a URL, archived pages, Memento, CDX.

Public: each module has functions that answer a `Visit`; `server/app.py` has their routes. Any thread of a worker may
call them, each with its own services. They read the archive through the gate, and never write.
"""
