"""Whether the full-text index is wanted and in step, and the one indexer of an archive (`lock/.search`).

Its libraries are loaded only when it runs: the agent, which asks often, needs none of them.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings_files import replace_file
from webarcfs.archive.index import database
from webarcfs.archive.model.errors import SettingsError, UsageError, WebarcError
from webarcfs.archive.system import locks

if TYPE_CHECKING:
    from agent.indexing.fulltext_run import Indexed


_log = logging.getLogger(__name__)
_STATE = "state"
#: Is called with a domain, documents done, and documents known.
Progress = Callable[[str, int, int], None]


def installed() -> bool:
    """Return whether the libraries of the extra `search` are there."""
    return all(find_spec(library) is not None for library in ("tantivy", "pypdfium2", "striprtf", "py3langid"))


def wanted(archive: Archive) -> bool:
    """Return whether the archive has a full-text index. False for faulty settings, which others report."""
    try:
        return settings_files.load(archive.settings)[0].index.search and installed()
    except SettingsError:
        return False


def is_behind(archive: Archive) -> bool:
    """Return whether something was published since the index was last brought in step. Cheap: it counts snapshots."""
    try:
        state = _state(archive)
    except FileNotFoundError:
        return False
    try:
        return bool(json.loads((archive.search / _STATE).read_text()) != state)
    except (FileNotFoundError, ValueError):
        return True


def count_behind(archive: Archive) -> int:
    """Return how many snapshots were published since the index was last brought in step; 0 if it is in step."""
    if not is_behind(archive):
        return 0
    known = max(0, _state(archive)[-1])
    try:
        indexed = int(json.loads((archive.search / _STATE).read_text())[-1])
    except (FileNotFoundError, ValueError, TypeError, LookupError):
        return known
    return max(1, known - max(0, indexed))  # after a patch, or a repair, there are as many as before


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
        state = _state(archive)
        done = fulltext_run.run(archive, stop, progress, anew=anew)
        replace_file(archive.search / _STATE, json.dumps(state).encode())
        return done


def _state(archive: Archive) -> list[int]:
    """Return what distinguishes a state of the archive: its feed, which grows with each publication, and webarc.db.

    A publication writes its line first, then its rows. An indexer that runs in between sees the line alone.
    """
    status = archive.changes.stat()
    try:
        snapshots = database.count_snapshots(archive.database)
    except WebarcError:  # there is none yet, or another check reports what it is
        snapshots = -1
    return [status.st_ino, status.st_size, status.st_mtime_ns, snapshots]


def findings(archive: Archive) -> list[str]:
    """Return what is wrong with the full-text index, a line each; none without an index, or while it is written."""
    if not archive.search.is_dir() or not wanted(archive):
        return []
    from agent.indexing import fulltext_run  # noqa: PLC0415 # it needs the libraries

    with locks.if_free(archive.search_lock) as free:
        return list(fulltext_run.findings(archive, in_step=not is_behind(archive))) if free else []


def recovered(archive: Archive) -> int | None:
    """Repair the index, if there is one: rebuild it where something is wrong, else bring it in step.

    Returns the number of documents that were put into it; None if none is wanted, and then there is none any more.
    """
    if not wanted(archive):
        with locks.exclusive(archive.search_lock):
            shutil.rmtree(archive.search, ignore_errors=True)
        return None
    wrong = findings(archive)
    for line in wrong:
        _log.warning("%s", line)
    return bring_in_step(archive, anew=bool(wrong)).documents


def remove_leftovers(archive: Archive) -> None:
    """Remove generations that nobody uses any more, unless one is being made."""
    if archive.search.is_dir() and wanted(archive):
        from webarcfs.search import generations  # noqa: PLC0415 # of the extra `search`

        with locks.if_free(archive.search_lock) as free:
            if free:
                generations.remove_others(archive)
