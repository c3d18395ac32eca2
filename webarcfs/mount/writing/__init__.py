"""New files, writes, closes, renames, and the thread that commits them.

Public: `writer` and `document_close` (for adapters), `addition_names`. Request threads
enter; closes are confirmed in workers; `committer` is a thread of its own. Imports archive/ and vfs/.

The parts of a mount that accepts additions, from its start to its end, and what happens by itself meanwhile.

Public: `service` (start to end). `settling` is a thread of its own. Imports mount/writing, vfs/ and archive/.
"""
