"""sqlite_utils, imported where a database is opened, and without numpy.

The library needs .1 s to import. A process that opens no database, as the one that reads a crawl's results, does
without it. It also imports numpy wherever that is installed, as by the extra `plot`, for types that nobody stores here:
as long again.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

_NUMPY = "numpy"
#: One thread at a time hides numpy: a second one would take the mark of the first for numpy, or remove it.
_importing = threading.Lock()


def queries_of(connection: sqlite3.Connection) -> Database:
    """Return the library's view of a connection: its queries return rows as dicts. For any thread."""
    with _importing:
        hides_numpy = "sqlite_utils" not in sys.modules and _NUMPY not in sys.modules
        if hides_numpy:
            sys.modules[_NUMPY] = None  # type: ignore[assignment] # an import of it fails then, as where it is missing
        try:
            from sqlite_utils import Database  # noqa: PLC0415 # for the reason above
        finally:
            if hides_numpy:
                del sys.modules[_NUMPY]
    return Database(connection)
