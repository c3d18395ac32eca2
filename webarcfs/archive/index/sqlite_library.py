"""sqlite_utils, imported where a database is opened, and without numpy.

The library needs .1 s to import. A process that opens no database, as the one that reads a crawl's results, does
without it. It also imports numpy wherever that is installed, as by the extra `plot`, for types that nobody stores here:
as long again.
"""

from __future__ import annotations

import sqlite3
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

_NUMPY = "numpy"


def queries_of(connection: sqlite3.Connection) -> Database:
    """Return the library's view of a connection: its queries return rows as dicts."""
    has_numpy = _NUMPY in sys.modules
    if not has_numpy:
        sys.modules[_NUMPY] = None  # type: ignore[assignment] # an import of it fails then, as where it is not installed
    try:
        from sqlite_utils import Database  # noqa: PLC0415 # for the reason above
    finally:
        if not has_numpy:
            del sys.modules[_NUMPY]
    return Database(connection)
