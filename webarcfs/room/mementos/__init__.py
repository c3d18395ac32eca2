"""Answers about URLs of the past: archived pages and their frame, TimeGate, TimeMaps, CDX, WARC records.

Public: each module has functions that answer a `Visit`; `server/app.py` has their routes. Any thread of a worker may
call them, each with its own services. Imports archive, content, gate, and of room/: wayback, replay, look, pages.
"""
