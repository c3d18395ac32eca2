"""`WebarchiveClient`: the archive for Python programs, on a mount or on the archive's directory.

Public: `WebarchiveClient`, `MetaData`, `CommitTag`, imported from here. A thread of their own calls observers.
"""

from webarcfs.client.client import CommitTag, MetaData, WebarchiveClient

__all__ = ["CommitTag", "MetaData", "WebarchiveClient"]
