"""Finds the SQL statements and schemas of webarcfs, in a checkout and in an installed wheel alike.

A checkout has them in `sql/` and `xsd/` at the top; a wheel has the same folders inside the package, since a wheel has
no other place for them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_ROOTS = (_PACKAGE / "_data", _PACKAGE.parent)


def path(folder: str, name: str) -> Path:
    """Return the path of `<folder>/<name>`; `folder` is `sql` or `xsd`. Raises FileNotFoundError if it is missing."""
    for root in _ROOTS:
        candidate = root / folder / name
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{folder}/{name} is missing from this installation of webarcfs; install it again")


@cache
def sql(name: str) -> str:
    """Return the text of `sql/<name>.sql`, as in `links/add_page` (/Db-2/: every statement is a file of its own)."""
    return path("sql", f"{name}.sql").read_text("utf-8")
