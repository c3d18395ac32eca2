"""Exports a selection as a folder that a browser reads: the newest snapshot of each domain, file by file.

It goes on where it was interrupted: notes beside the folder have a line for each file that is finished. After another
start of the machine a line proves nothing, since nothing is synced meanwhile; then the export begins anew. What it
writes depends on the selection alone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import webarcfs
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import MetaData
from webarcfs.content.rewriting.references import LONGEST_BODY
from webarcfs.exchange import documents
from webarcfs.exchange.bodies import SMALL
from webarcfs.exchange.selection import Exported, Selection
from webarcfs.exchange.static import own_pages, pages, targets
from webarcfs.exchange.static.file_types import FileType, Reading
from webarcfs.exchange.static.own_pages import Listed
from webarcfs.exchange.static.pages import page_of
from webarcfs.exchange.static.places import Places, content_type_of, kind_of
from webarcfs.exchange.summary import Progress, Stop, Summary

#: Version of the form of the folder, in static.json.
FORMAT = 1
#: A file while it is written, and a whole body of which the beginning is read.
_NEW = ".new"
_WHOLE = ".whole"
#: What may have been done to a document, beside its references.
_CUT = "pages cut, since they are too long to be rewritten"
_CLEANED = "drawings written anew, without scripts and declarations"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SOME = 100
_SOFTWARE = f"webarcfs {webarcfs.__version__}"


def export(selection: Selection, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write the folder `out`, or go on with it. Raises Interrupted when `stop` says so, Damaged, OSError."""
    newest = replace(selection, chosen={domain: found[-1:] for domain, found in selection.chosen.items()}, before={})
    run = _Export(newest, out, progress, stop)
    with _begun(newest, out) as file:
        lines = _Lines(file, out)
        run.write(lines)
        run.finish(lines)
    left_out = dict(run.left_out)
    if older := len(selection) - len(newest):
        left_out["older snapshots"] = older
    return Summary(
        snapshots=len(newest), documents=run.count, files=run.count + run.own, bytes=run.size, left_out=left_out
    )


def _begun(selection: Selection, out: Path) -> TextIO:
    """Open the notes, behind their first line; without notes of this selection and start of the machine, begin anew."""
    said = {"format": FORMAT, "selection": selection.digest, "boot": _BOOT.read_text("ascii").strip()}
    notes = out.with_name(f"{out.name}.notes")
    notes.touch()
    file = notes.open("r+", encoding="ascii", newline="\n")
    if file.readline() != json.dumps(said) + "\n":
        shutil.rmtree(out, ignore_errors=True)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(said) + "\n")
        file.flush()
    out.mkdir(exist_ok=True)
    for name in (_NEW, _WHOLE):
        (out / name).unlink(missing_ok=True)
    return file


class _Lines:
    """The lines of finished files: those of an earlier run are read first, then new ones are added."""

    def __init__(self, file: TextIO, out: Path) -> None:
        self._file, self._out = file, out
        self._first = self._at = file.tell()
        self._is_earlier = True

    def found(self, path: str) -> dict[str, Any] | None:
        """Return the next line of the earlier run, if it is whole and that of this file, which is as it says."""
        if not self._is_earlier:
            return None
        line = self._file.readline()
        if line.endswith("\n"):
            row: dict[str, Any] = json.loads(line)
            if row["file"] == path and self._is_there(row):
                self._at += len(line)
                return row
        self._file.seek(self._at)
        self._file.truncate()
        self._is_earlier = False
        return None

    def _is_there(self, row: dict[str, Any]) -> bool:
        try:
            return bool((self._out / row["file"]).stat().st_size == row["size"])
        except FileNotFoundError:
            return False

    def add(self, row: dict[str, Any]) -> None:
        """Add the line of a file that is finished."""
        self._file.write(json.dumps(row) + "\n")

    def all(self) -> Iterator[str]:
        """Yield all lines."""
        self._file.seek(self._first)
        return (line.rstrip("\n") for line in self._file)


@dataclass(slots=True)
class _Start:
    """The page with which a domain is listed: its root, else the highest page."""

    rank: tuple[int, int, int, str] | None = None
    path: str = ""
    title: str = ""

    def offer(self, arc: str, path: str, meta: MetaData) -> None:
        rank = (int(arc != arc_paths.DIRECTORY_INDEX), arc.count("/"), len(arc), arc)
        if self.rank is None or rank < self.rank:
            self.rank, self.path, self.title = rank, path, meta.title


@dataclass
class _Export:
    """One run of an export."""

    selection: Selection
    out: Path
    progress: Progress
    stop: Stop
    count: int = 0
    own: int = 0
    size: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    listed: list[tuple[Listed, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        trees = {domain: found[0].tree for domain, found in self.selection.chosen.items()}
        self._places = Places(trees, self.selection.open)
        # Folders that were made; to ask the disk for each file would cost a system call.
        self._folder = lru_cache(maxsize=10_000)(self._make_folder)

    def write(self, lines: _Lines) -> None:
        """Write the files of all documents."""
        for number, exported in enumerate(self.selection):
            self.progress("snapshots", number, len(self.selection))
            self._snapshot(exported, lines)
        self.progress("snapshots", len(self.selection), len(self.selection))

    def _snapshot(self, exported: Exported, lines: _Lines) -> None:
        start, before = _Start(), self.count
        domain = exported.tag.domain
        for found, meta, kind in self._documents(exported):
            path = self._places.path_of(domain, found.path, kind)
            if kind.reading is Reading.HTML:
                start.offer(found.path, path, meta)
            row = lines.found(path)
            if row is None:
                row = self._file(exported, found, meta, kind, path)
                lines.add(row)
            self.count += 1
            self.size += row["size"]
            self.left_out.update(row.get("changed", ()))
            if not self.count % _SOME:
                self.progress("documents", self.count, self.count)
        message = exported.message
        listed = Listed(
            domain=domain, commit_tag=str(exported.tag), publication=message.publication,
            documents=self.count - before, start=targets.relative("", start.path), title=start.title,
        )  # fmt: skip
        self.listed.append((listed, {"tree": exported.tree, "record": message.job, "start": start.path}))

    def _documents(self, exported: Exported) -> Iterator[tuple[documents.Document, MetaData, FileType]]:
        """Yield the documents of a snapshot that the folder will have; count what it will not."""
        for found in documents.documents(exported.store, exported.tree):
            if self.stop():
                raise Interrupted("the export was interrupted; the same command goes on")
            if not found.data_xml:
                continue
            if not found.data:
                self.left_out["documents without a body"] += 1
                continue
            if additions := sum(1 for _ in found.additions()):
                self.left_out["additions"] += additions
            meta = data_xml.metadata(exported.store.read(found.data_xml))
            if meta.is_error_page:
                self.left_out["error pages"] += 1
            else:
                yield found, meta, kind_of(exported.store, meta, found.path, found.head)

    # -- files

    def _file(
        self, exported: Exported, found: documents.Document, meta: MetaData, kind: FileType, path: str
    ) -> dict[str, Any]:
        """Write the file of a document; return its line."""
        store, blob = exported.store, found.files[found.data]
        row: dict[str, Any] = {
            "file": path, "url": meta.url, "commitTag": str(meta.commit_tag), "blob": blob, "mimeType": meta.mime_type,
            "captureTime": meta.capture_time.isoformat(),
        }  # fmt: skip
        changed = []
        new = self.out / _NEW
        if kind.reading is Reading.NONE:
            self._copy(store, blob, new)
        else:
            page = page_of(self._page(exported, found, meta, kind, path), self._beginning(store, blob), self._places.of)
            new.write_bytes(page.body)
            changed = [*([_CUT] if page.is_cut else []), *([_CLEANED] if page.is_cleaned else [])]
        target = self.out / path
        self._folder(target.parent)
        row["size"] = new.stat().st_size
        new.replace(target)
        return row | ({"changed": changed} if changed else {})

    def _page(
        self, exported: Exported, found: documents.Document, meta: MetaData, kind: FileType, path: str
    ) -> pages.Document:
        """Return what is known of a document that is rewritten."""
        said = {
            "url": meta.url, "captured": meta.capture_time.isoformat(), "commitTag": str(meta.commit_tag),
            "snapshot": str(exported.tag), "publication": exported.message.publication,
            "record": exported.message.job, "blob": found.files[found.data],
        }  # fmt: skip
        content_type = content_type_of(exported.store, found.head)
        return pages.Document(url=meta.url, path=path, reading=kind.reading, content_type=content_type, said=said)

    def _copy(self, store: Repository, blob: str, path: Path) -> None:
        size = store.size(blob)
        if size <= SMALL:
            path.write_bytes(store.read(blob))
            return
        with path.open("wb") as file:
            # Reserved first: a full disk then fails as one, instead of a git that fails for some reason.
            os.posix_fallocate(file.fileno(), 0, size)
            store.copy(blob, file.fileno())

    def _beginning(self, store: Repository, blob: str) -> bytes:
        """Return the beginning of a body, as far as it can be rewritten, and a byte more, if it has more."""
        if store.size(blob) <= LONGEST_BODY:
            return store.read(blob)
        whole = self.out / _WHOLE
        self._copy(store, blob, whole)
        with whole.open("rb") as file:
            found = file.read(LONGEST_BODY + 1)
        whole.unlink()
        return found

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    # -- what is not archived

    def finish(self, lines: _Lines) -> None:
        """Write the pages of the folder's own, and static.json."""
        self._own("index.html", own_pages.index((each for each, _ in self.listed), _SOFTWARE))
        self._own(targets.MISSING, own_pages.missing())
        self._own(targets.FORM, own_pages.form())
        self._own(targets.LIVE, own_pages.live())
        new = self.out / _NEW
        with new.open("w", encoding="ascii", newline="\n") as file:
            head = {"format": "webarcfs static", "version": FORMAT, "software": _SOFTWARE, "files": self.count}
            snapshots = [
                {
                    "commitTag": each.commit_tag, "domain": each.domain, "publication": each.publication, **more,
                    "documents": each.documents,
                }
                for each, more in self.listed
            ]  # fmt: skip
            file.write(json.dumps({**head, "snapshots": snapshots}, indent=1)[:-2] + ',\n "documents": [')
            sign = "\n"
            for line in lines.all():
                file.write(f"{sign}  {line}")
                sign = ",\n"
            file.write("\n ]\n}\n")
        self.size += new.stat().st_size
        self.own += 1
        new.replace(self.out / "static.json")

    def _own(self, path: str, content: bytes) -> None:
        target = self.out / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
        self.own += 1
        self.size += len(content)
