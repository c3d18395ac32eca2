"""Finds the SQL statements and schemas that come with webarcfs, in a checkout and in an installed wheel alike.

In the source tree they lie in `sql/` and `xsd/` at the top; a wheel carries the same folders inside the package, since
nothing else of a wheel has a place of its own.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_ROOTS = (_PACKAGE / "_data", _PACKAGE.parent)


def path(folder: str, name: str) -> Path:
    """Path of `<folder>/<name>`; `folder` is `sql` or `xsd`. Raises FileNotFoundError: the installation is broken."""
    for root in _ROOTS:
        candidate = root / folder / name
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"{folder}/{name} is missing from this installation of webarcfs; install it again")


@cache
def sql(name: str) -> str:
    """The text of `sql/<name>.sql`, as in `links/add_page` (/Db-2/: every statement is a file of its own)."""
    return path("sql", f"{name}.sql").read_text("utf-8")
