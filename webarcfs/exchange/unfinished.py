"""The folder in which a result is made before it has its name: `OUT.part`, from which an interrupted export goes on.

It has what was asked and the snapshots that were selected then, the result under its own name, and what a format notes
beside it. One process at a time works in it. At the end the result is made durable, gets its name in one step, and the
folder goes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webarcfs.archive.model.errors import Damaged, Exists, UsageError
from webarcfs.archive.system import locks
from webarcfs.archive.system.fsync import replacing, sync_folder, sync_tree
from webarcfs.exchange.selection import Selection
from webarcfs.exchange.summary import Summary

_ASKED = "export.json"
_DONE = "done.json"
_LOCK = ".lock"
_NEW = ".new"
#: Files beyond which the whole system is synced at once: one after the other takes longer.
_MANY = 1_000


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What makes a result at `out`. `asked` tells it from others; `select` decides what to export, `again` makes the
    selection of what was written down when it began; `make` writes it to a scratch path.
    """

    out: Path
    asked: Mapping[str, str]
    select: Callable[[], Selection]
    again: Callable[[Mapping[str, Any]], Selection]
    make: Callable[[Selection, Path], Summary]

    def run(self) -> dict[str, Any]:
        """Make the result, or go on with it; return the fields of its summary.

        Raises Exists if something else is at `out` or at its scratch folder, Busy while another process makes it,
        UsageError where it cannot be, and what its functions raise.
        """
        parent = self.out.absolute().parent
        if not parent.is_dir():
            raise UsageError(f"{parent} is no folder; make it first")
        if not (self._part / _DONE).exists():
            self._drop_rest()
            must_be_free(self.out)
        if self._part.is_symlink() or (self._part.exists() and not self._part.is_dir()):
            raise Exists(f"{self._part} is in the way; an export would work there")
        self._part.mkdir(exist_ok=True)
        try:
            busy = f"another export is writing {self.out}; its folder is {self._part}"
            with locks.exclusive_or_busy(self._part / _LOCK, busy):
                return self._in_turn()
        finally:
            self._forget()

    @property
    def _part(self) -> Path:
        return self.out.with_name(f"{self.out.name}.part")

    def _in_turn(self) -> dict[str, Any]:
        selection, scratch, done = self._selected(), self._part / self.out.name, self._part / _DONE
        if done.exists() and not scratch.exists() and self.out.exists():
            found: dict[str, Any] = _read(done)  # a kill came between its name and the end of the folder
        else:
            must_be_free(self.out)
            found = self.make(selection, scratch).as_fields()
            _sync(scratch)
            _write(done, found)
            must_be_free(self.out)
            scratch.rename(self.out)
            sync_folder(self.out.absolute().parent)
        shutil.rmtree(self._part)
        return found

    def _selected(self) -> Selection:
        """Return the selection that was written down, or decide on one and write it down."""
        path = self._part / _ASKED
        if not path.exists():
            others = [each.name for each in self._part.iterdir() if each.name not in (_LOCK, f"{_ASKED}{_NEW}")]
            if others:
                raise Exists(f"{self._part} is no unfinished export, it has {others[0]}; remove it, or name another")
            selection = self.select()
            _write(path, {"asked": dict(self.asked), "selection": selection.as_json()})
            return selection
        try:
            noted = _read(path)
            before, snapshots = dict(noted["asked"]), dict(noted["selection"])
        except (KeyError, TypeError, ValueError):
            raise Damaged(f"{path} cannot be read; remove {self._part}, and export anew") from None
        if before != self.asked:
            told = ", ".join(f"{name} {value}" for name, value in before.items() if value != self.asked.get(name))
            raise Exists(f"{self._part} is an unfinished export of something else: {told}; finish it, or remove it")
        return self.again(snapshots)

    def _drop_rest(self) -> None:
        """Remove what is left of the folder where a kill came after the result had its name."""
        if self.out.exists() and (self._part / _ASKED).exists() and not (self._part / self.out.name).exists():
            shutil.rmtree(self._part, ignore_errors=True)

    def _forget(self) -> None:
        """Remove the folder if nothing was begun in it."""
        own = (_LOCK, _ASKED, f"{_ASKED}{_NEW}")
        with suppress(OSError):
            if all(each.name in own for each in self._part.iterdir()):
                shutil.rmtree(self._part)


def must_be_free(out: Path) -> None:
    """Raise Exists if there is something at `out`: an export never replaces anything."""
    if out.exists() or out.is_symlink():
        raise Exists(f"{out} is there already; give another name, or remove it")


def _sync(result: Path) -> None:
    if not result.is_dir():
        with result.open("rb") as file:
            os.fsync(file.fileno())
    elif sum(len(files) for _, _, files in os.walk(result)) > _MANY:
        os.sync()
    else:
        sync_tree(result)


def _write(path: Path, value: dict[str, Any]) -> None:
    scratch = path.with_name(f"{path.name}{_NEW}")
    scratch.unlink(missing_ok=True)
    with replacing(path, scratch) as file:
        file.write(json.dumps(value).encode())


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
