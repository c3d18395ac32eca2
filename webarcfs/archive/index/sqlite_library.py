"""sqlite_utils, imported without numpy.

It imports numpy wherever that is installed, as by the extra `plot`, for types that nobody stores here: a tenth of a
second at the start of each command.
"""

from __future__ import annotations

import sys

_NUMPY = "numpy"
_has_numpy = _NUMPY in sys.modules
if not _has_numpy:
    sys.modules[_NUMPY] = None  # type: ignore[assignment] # an import of it fails then, as where it is not installed
try:
    from sqlite_utils import Database
finally:
    if not _has_numpy:
        del sys.modules[_NUMPY]

__all__ = ["Database"]
