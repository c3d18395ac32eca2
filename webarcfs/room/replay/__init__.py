"""What replay decides: which state answers a URL, where references lead, which headers go along. No handlers.

Public: `states`, `targets`, `rewriting`, `headers`, `ranges`, `reader_token`; pywb's engine beside them. Any thread may
call them. Imports archive, content, warc, gate, and of room/: wayback.
"""
