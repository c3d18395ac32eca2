"""Exports a selection as a folder that a browser reads: the newest snapshot of each domain, file by file.

It resumes where it was interrupted: notes beside the folder have a line for each file that is finished. After another
start of the machine a line proves nothing, since nothing is synced meanwhile; then the export starts over. What it
writes depends on the selection alone.

Some pages of the folder are not archived: what is in it, and the notices that links out lead to. They need no script.
The notice about a link shows its address by a script of its own, where the browser runs that: a file does not receive
what is behind the `#`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, TextIO

import webarcfs
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import MetaData
from webarcfs.content.references import LONGEST_BODY
from webarcfs.export import static_pages
from webarcfs.export.export_result import Progress, Stop, Summary
from webarcfs.export.selection import Exported, ExportedDocument, Selection, documents
from webarcfs.export.static_pages import page_of
from webarcfs.export.static_places import FileType, Places, SiteReading, content_type_of, kind_of
from webarcfs.export.warc_records import SMALL

# == own pages, pure ==================================================================================================


_STYLE = (
    "body{font:1rem/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid #bbb}code{overflow-wrap:anywhere}"
)
_SCRIPT = 'try{document.getElementById("address").textContent=decodeURIComponent(location.hash.slice(1))}catch(error){}'
# A way that starts with `../` stays where the folder is, whatever comes behind.
_LEADING_SCRIPT = (
    'try{const way=decodeURIComponent(location.hash.slice(1));document.getElementById("address").textContent=way;'
    'document.getElementById("way").href="../"+way}catch(error){}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A domain in the list: its snapshot, and the file of its start page with the title; empty without one.

    `is_resource`: it has no page, only what pages of other hosts needed. Such domains come last, under a heading.
    """

    domain: str
    commit_tag: str
    publication: str
    documents: int
    start: str = ""
    title: str = ""
    is_resource: bool = False


def index(listed: Iterable[Listed], software: str) -> bytes:
    """Return the page that lists what is in the folder."""
    snapshots = list(listed)
    sites = [_row(snapshot) for snapshot in snapshots if not snapshot.is_resource]
    others = [_row(snapshot) for snapshot in snapshots if snapshot.is_resource]
    rows = "\n".join([*sites, *([_HEADING, *others] if others else [])])
    body = f"""<h1>Archived web sites</h1>
<p>This folder has archived pages as they were at the times below. Links lead to the pages of this folder only; scripts
do not run. <code>static.json</code> says where each file comes from.</p>
<p lang="de">Dieser Ordner enthält archivierte Seiten, so wie sie zu den genannten Zeiten waren. Verweise führen nur zu
Seiten dieses Ordners; Skripte laufen nicht. <code>static.json</code> nennt die Herkunft jeder Datei.</p>
<table>
<tr><th scope="col">Site / <span lang="de">Angebot</span></th><th scope="col">\
Snapshot (<abbr title="UTC+01:00">CET</abbr>)</th><th scope="col">Publication / <span lang="de">Publikation</span></th>\
<th scope="col">Documents / <span lang="de">Dokumente</span></th></tr>
{rows}
</table>
<p>Made by {escape(software)}.</p>"""
    return _page("Archived web sites", body, "")


_HEADING = (
    '<tr><th scope="rowgroup" colspan="4">Hosts without pages, which only gave resources / '
    '<span lang="de">Rechner ohne Seiten, die nur Ressourcen lieferten</span></th></tr>'
)


def _row(snapshot: Listed) -> str:
    name = escape(snapshot.domain)
    if snapshot.start:
        title = f"<br>{escape(snapshot.title)}" if snapshot.title else ""
        name = f'<a href="{escape(snapshot.start)}">{name}</a>{title}'
    cells = (name, f"<code>{escape(snapshot.commit_tag)}</code>", escape(snapshot.publication), str(snapshot.documents))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def missing() -> bytes:
    """Return the notice for what is not in the folder."""
    body = """<h1>This is not in the folder</h1>
<p>The link leads out of what was exported: to another site, to a page that was not archived, or to a mail address. It
was put out of force; nothing was asked for on the network.</p>
<p lang="de">Der Verweis führt aus dem hinaus, was exportiert wurde: zu einem anderen Angebot, zu einer Seite, die nicht
archiviert wurde, oder zu einer Mailadresse. Er wurde außer Kraft gesetzt; im Netz wurde nichts abgefragt.</p>
"""
    return _notice("This is not in the folder", body)


def form() -> bytes:
    """Return the notice for forms."""
    body = """<h1>Forms do not work here</h1>
<p>The form belongs to an archived page. Nothing that was typed in was sent.</p>
<p lang="de">Das Formular gehört zu einer archivierten Seite. Die Eingaben wurden nirgendwohin gesendet.</p>
"""
    return _notice("Forms do not work here", body)


def live() -> bytes:
    """Return the notice before a document that keeps its links, with the way to it."""
    body = """<h1>This document keeps its links</h1>
<p>It is a PDF in this folder. Links in it were not changed: they lead to the live web, and not to archived pages. A
program that shows it may ask for them when they are clicked.</p>
<p lang="de">Es ist ein PDF in diesem Ordner. Die Verweise darin wurden nicht geändert: sie führen in das heutige Netz,
und nicht zu archivierten Seiten. Ein Programm, das es zeigt, fragt sie vielleicht ab, wenn sie angeklickt werden.</p>
<p><a id="way">Open the document / <span lang="de">Das Dokument öffnen</span></a></p>
"""
    return _notice("This document keeps its links", body, _LEADING_SCRIPT)


def _notice(title: str, body: str, script: str = _SCRIPT) -> bytes:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    ways = f"""<p>Address / <span lang="de">Adresse</span>:
<code id="address">behind the # of this page's own address</code></p>
<p><a href="../index.html">What is in the folder / <span lang="de">Was der Ordner enthält</span></a></p>
<script>{script}</script>"""
    return _page(title, body + ways, f"script-src 'sha256-{digest}'; ")


def _page(title: str, body: str, scripts: str) -> bytes:
    policy = f"default-src 'none'; {scripts}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
""".encode()


# == export ===========================================================================================================


#: Version of the form of the folder, in static.json.
FORMAT = 1
#: A file while it is written, and a whole body of which the beginning is read.
_NEW = ".new"
_WHOLE = ".whole"
#: What may have been done to a document, beside its references.
_CUT = "pages cut, since they are too long to be rewritten"
_CLEANED = "drawings rewritten, without scripts and declarations"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SOME = 100
_SOFTWARE = f"webarcfs {webarcfs.__version__}"


def export(selection: Selection, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write the folder `out`, or resume it. Raises Interrupted when `stop` says so, Damaged, OSError."""
    newest = replace(
        selection, chosen={domain: snapshots[-1:] for domain, snapshots in selection.chosen.items()}, before={}
    )
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
    """Open the notes, behind their first line; without notes of this selection and start of the machine, restart."""
    head = {"format": FORMAT, "selection": selection.digest, "boot": _BOOT.read_text("ascii").strip()}
    notes = out.with_name(f"{out.name}.notes")
    notes.touch()
    file = notes.open("r+", encoding="ascii", newline="\n")
    if file.readline() != json.dumps(head) + "\n":
        shutil.rmtree(out, ignore_errors=True)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(head) + "\n")
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
        trees = {domain: snapshots[0].tree for domain, snapshots in self.selection.chosen.items()}
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
        start, before, resources = _Start(), self.count, 0
        domain = exported.tag.domain
        for document, meta, kind in self._documents(exported):
            path = self._places.path_of(domain, document.path, kind)
            resources += meta.is_resource
            if kind.reading is SiteReading.HTML and not meta.is_resource:
                start.offer(document.path, path, meta)
            row = lines.found(path)
            if row is None:
                row = self._file(exported, document, meta, kind, path)
                lines.add(row)
            self.count += 1
            self.size += row["size"]
            self.left_out.update(row.get("changed", ()))
            if not self.count % _SOME:
                self.progress("documents", self.count, self.count)
        message = exported.message
        listed = Listed(
            domain=domain, commit_tag=str(exported.tag), publication=message.publication,
            documents=self.count - before, start=static_pages.relative("", start.path), title=start.title,
            is_resource=0 < resources == self.count - before,
        )  # fmt: skip
        self.listed.append((listed, {"tree": exported.tree, "record": message.job, "start": start.path}))

    def _documents(self, exported: Exported) -> Iterator[tuple[ExportedDocument, MetaData, FileType]]:
        """Yield the documents of a snapshot that the folder will have; count what it will not."""
        for document in documents(exported.store, exported.tree):
            if self.stop():
                raise Interrupted("the export was interrupted; the same command resumes it")
            if not document.data_xml:
                continue
            if not document.data:
                self.left_out["documents without a body"] += 1
                continue
            if additions := sum(1 for _ in document.additions()):
                self.left_out["additions"] += additions
            meta = data_xml.metadata(exported.store.read(document.data_xml))
            if meta.is_error_page:
                self.left_out["error pages"] += 1
            else:
                yield document, meta, kind_of(exported.store, meta, document.path, document.head)

    # -- files

    def _file(
        self, exported: Exported, document: ExportedDocument, meta: MetaData, kind: FileType, path: str
    ) -> dict[str, Any]:
        """Write the file of a document; return its line."""
        store, blob = exported.store, document.files[document.data]
        row: dict[str, Any] = {
            "file": path, "url": meta.url, "commitTag": str(meta.commit_tag), "blob": blob, "mimeType": meta.mime_type,
            "captureTime": meta.capture_time.isoformat(),
        }  # fmt: skip
        changed = []
        new = self.out / _NEW
        if kind.reading is SiteReading.NONE:
            self._copy(store, blob, new)
        else:
            page = page_of(
                self._page(exported, document, meta, kind, path), self._beginning(store, blob), self._places.of
            )
            new.write_bytes(page.body)
            changed = [*([_CUT] if page.is_cut else []), *([_CLEANED] if page.is_cleaned else [])]
        target = self.out / path
        self._folder(target.parent)
        row["size"] = new.stat().st_size
        new.replace(target)
        return row | ({"changed": changed} if changed else {})

    def _page(
        self, exported: Exported, document: ExportedDocument, meta: MetaData, kind: FileType, path: str
    ) -> static_pages.RewrittenDocument:
        """Return what is known of a document that is rewritten."""
        comment = {
            "url": meta.url, "captured": meta.capture_time.isoformat(), "commitTag": str(meta.commit_tag),
            "snapshot": str(exported.tag), "publication": exported.message.publication,
            "record": exported.message.job, "blob": document.files[document.data],
        }  # fmt: skip
        content_type = content_type_of(exported.store, document.head)
        return static_pages.RewrittenDocument(
            url=meta.url, path=path, reading=kind.reading, content_type=content_type, comment=comment
        )

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
            beginning = file.read(LONGEST_BODY + 1)
        whole.unlink()
        return beginning

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    # -- what is not archived

    def finish(self, lines: _Lines) -> None:
        """Write the pages of the folder's own, and static.json."""
        self._own("index.html", index((snapshot for snapshot, _ in self.listed), _SOFTWARE))
        self._own(static_pages.MISSING, missing())
        self._own(static_pages.FORM, form())
        self._own(static_pages.LIVE, live())
        new = self.out / _NEW
        with new.open("w", encoding="ascii", newline="\n") as file:
            head = {"format": "webarcfs static", "version": FORMAT, "software": _SOFTWARE, "files": self.count}
            snapshots = [
                {
                    "commitTag": snapshot.commit_tag, "domain": snapshot.domain,
                    "publication": snapshot.publication, **more, "documents": snapshot.documents,
                }
                for snapshot, more in self.listed
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
