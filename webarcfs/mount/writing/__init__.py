"""New files, writes, closes, renames, and the thread that commits them.

Public: `writer` and `document_close` (for adapters), `addition_names`. Request threads
enter; closes are confirmed in workers; `committer` is a thread of its own. Imports archive/ and view/.
"""
