"""`webarc serve --check`: whether the room could be opened, before anybody waits for it. It changes nothing.

Each check is tried, so that all faults are reported at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from webarcfs.access import access_rules
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.config import collection_files, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import query
from webarcfs.archive.model.errors import NotFound, UsageError, WebarcError
from webarcfs.archive.model.sites import site_of
from webarcfs.room.server import serving
from webarcfs.room.server.options import Engine, ServerOptions, room_options

_LIBRARIES = ("starlette", "uvicorn", "httptools", "jinja2", "babel")
_SEARCH = ("tantivy",)


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what was found; `is_good` without a fault."""

    what: str
    found: str
    is_good: bool


def checks(options: ServerOptions) -> Iterator[Check]:
    """Yield each check, when it is done. `options.archive` is an archive."""
    archive = Archive(options.archive)
    for what, look in (
        ("libraries", _libraries),
        ("archive", lambda: _owner(archive)),
        ("settings", lambda: _settings(archive)),
        ("collections", lambda: _collections(archive)),
        ("database", lambda: _database(archive)),
        ("access.aclj", lambda: _access(archive)),
        ("catalogue", lambda: _catalogue(archive)),
        ("engine", lambda: _engine(options)),
        ("addresses", lambda: _addresses(options)),
        ("sites", lambda: _sites(options)),
    ):
        yield _checked(what, look)


def _checked(what: str, look: Callable[[], str]) -> Check:
    try:
        return Check(what, look(), True)
    except (WebarcError, OSError) as error:
        return Check(what, str(error), False)


def _libraries() -> str:
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)}: not installed; pip install 'webarcfs[room]'")
    if any(find_spec(name) is None for name in _SEARCH):
        return "all but those for searching; pip install 'webarcfs[search]'"
    return "all are there"


def _owner(archive: Archive) -> str:
    owner = archive.root.stat().st_uid
    if os.geteuid() in (0, owner):
        return f"{archive.root}, served as user {owner}"
    return f"{archive.root}, served as user {os.geteuid()}, who is not its owner: names of people.toml are not known"


def _settings(archive: Archive) -> str:
    _, warning = settings_files.load(archive.settings)
    return warning or str(archive.settings)


def _collections(archive: Archive) -> str:
    if faults := collection_files.faults_of(archive):
        raise UsageError("; ".join(faults))
    return f"{len(collection_files.load_collections(archive).by_name)} collections"


def _database(archive: Archive) -> str:
    try:
        metadata = next(query.ask(archive.database, limit=1), None)
    except NotFound:
        return "not there yet: nothing was captured"
    return "it can be read" if metadata is not None else "it can be read, and is empty"


def _access(archive: Archive) -> str:
    return f"{len(access_rules.load(archive).rules)} rules"


def _catalogue(archive: Archive) -> str:
    first = next(Gate(archive, Reader()).records(), None)
    return "readers see records" if first is not None else "readers see no record"


def _engine(options: ServerOptions) -> str:
    if options.engine is not Engine.PYWB:
        return options.engine
    from webarcfs.room.replay.pywb_process import program  # noqa: PLC0415 # one engine of two

    return f"{options.engine}: {program()}"


def _addresses(options: ServerOptions) -> str:
    """Bind them, and release them."""
    room, replay = serving.bound(options, 0.0)
    try:
        bound_options = room_options(options, room.address, replay.address if replay else None, b"")
        where = f"{room.address} as {bound_options.origin or 'an unknown origin'}"
        return (
            where if replay is None else f"{where}; archived pages: {replay.address} as {bound_options.replay_origin}"
        )
    finally:
        room.close()
        if replay is not None:
            replay.close()


def _sites(options: ServerOptions) -> str:
    """Say whether browsers take the room and archived pages for one site.

    If they are two, a browser that blocks storage of third parties gives the scripts of archived pages none, and they
    do not run (Storage Access API; private windows do so).
    """
    if options.engine is not Engine.PYWB:
        return "no scripts of archived pages run, so their site does not matter"
    asked = room_options(options, options.listen, options.replay_listen, b"")
    room, replay = (site_of(urlsplit(origin).hostname or "") for origin in (asked.origin, asked.replay_origin))
    if room == replay:
        return f"the room and archived pages are of one site: {room}"
    raise UsageError(
        f"the room is of the site {room}, archived pages are of {replay}: where a browser blocks storage of third "
        "parties, as private windows do, their scripts do not run; choose both names below one domain, such as "
        "archive.example.org and replay.archive.example.org"
    )
