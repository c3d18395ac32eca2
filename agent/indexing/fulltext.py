"""Whether the full-text index is wanted and in step, and the one indexer of an archive (`lock/.search`).

Its libraries are loaded only when it runs: the agent, which asks often, needs none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webarcfs.archive.config import settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.toml_file import write
from webarcfs.archive.model.errors import SettingsError, UsageError
from webarcfs.archive.system import locks

if TYPE_CHECKING:
    from agent.indexing.fulltext_run import Indexed

_STATE = "state"
#: Is called with a domain, documents done, and documents known.
Progress = Callable[[str, int, int], None]


def installed() -> bool:
    """Return whether the libraries of the extra `search` are there."""
    return all(find_spec(each) is not None for each in ("tantivy", "pypdfium2", "striprtf", "py3langid"))


def wanted(archive: Archive) -> bool:
    """Return whether the archive has a full-text index. False for faulty settings, which others report."""
    try:
        return settings_file.load(archive.settings)[0].index.search and installed()
    except SettingsError:
        return False


def is_behind(archive: Archive) -> bool:
    """Return whether something was published since the index was last brought in step. Cheap: reads two small files."""
    try:
        state = _feed(archive)
    except FileNotFoundError:
        return False
    try:
        return bool(json.loads((archive.search / _STATE).read_text()) != state)
    except (FileNotFoundError, ValueError):
        return True


def bring_in_step(
    archive: Archive,
    stop: Callable[[], bool] = lambda: False,
    progress: Progress = lambda *_: None,
    *,
    anew: bool = False,
) -> Indexed:
    """Index what is missing; with `anew`, everything, beside the index in use. Waits for another process that does it.

    Raises UsageError without the libraries, Interrupted if `stop` returns True, Busy, OSError.
    """
    if not installed():
        raise UsageError("the full-text index needs more libraries: pip install 'webarcfs[search]'")
    from agent.indexing import fulltext_run  # noqa: PLC0415 # it needs the libraries

    with locks.exclusive(archive.search_lock):
        archive.search.mkdir(exist_ok=True)
        state = _feed(archive)
        done = fulltext_run.run(archive, stop, progress, anew=anew)
        write(archive.search / _STATE, json.dumps(state).encode())
        return done


def _feed(archive: Archive) -> list[int]:
    """Return what tells a state of the feed from others; it grows with each publication."""
    found = archive.changes.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]
