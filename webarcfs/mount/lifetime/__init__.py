"""The parts of a mount that accepts additions, from its start to its end, and what happens by itself meanwhile.

Public: `service` (start to end). `settling` is a thread of its own. Imports mount/writing, view/ and archive/.
"""
