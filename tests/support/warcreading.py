"""Exported WARC files, read by a program that is not ours, and put together again by the rules that README has."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from warcio.archiveiterator import ArchiveIterator


@dataclass
class Read:
    """A record as warcio reads it; its digests were checked."""

    kind: str
    uri: str
    fields: dict[str, str]
    status: str
    body: bytes

    @property
    def tag(self) -> str:
        return self.fields.get("Webarcfs-Commit-Tag", "")

    @property
    def path(self) -> str:
        return _path(self.fields.get("Webarcfs-Path", ""))


def read(path: Path) -> list[Read]:
    """All records of a file. Raises where a digest is wrong."""
    return read_bytes(path.read_bytes())


def read_bytes(raw: bytes) -> list[Read]:
    found = []
    for record in ArchiveIterator(io.BytesIO(raw), check_digests="raise"):
        http: Any = record.http_headers
        found.append(
            Read(
                record.rec_type,
                record.rec_headers.get_header("WARC-Target-URI") or "",
                dict(record.rec_headers.headers),
                http.get_statuscode() if http else "",
                record.content_stream().read(),
            )
        )
    return found


@dataclass
class Rebuilt:
    """A snapshot that was put together: path → bytes, of its state and of what its publication saw."""

    named: dict[str, str]
    files: dict[str, bytes] = field(default_factory=dict)
    seen: dict[str, bytes] = field(default_factory=dict)
    redirects: list[str] = field(default_factory=list)
    seen_redirects: list[str] = field(default_factory=list)


def rebuilt(records: Iterable[Read]) -> list[Rebuilt]:
    """The snapshots of an export, in order."""
    found: list[Rebuilt] = []
    last: dict[str, Rebuilt] = {}
    before: Rebuilt | None = None
    for each in records:
        if each.uri.startswith("urn:webarcfs:snapshot:"):
            lines = [line.split(": ", 1) for line in each.body.decode().splitlines()]
            found.append(Rebuilt(dict(lines)))
            before, last[each.tag.partition("@")[2]] = last.get(each.tag.partition("@")[2]), found[-1]
        if each.kind == "warcinfo" or each.uri.startswith("urn:webarcfs:snapshot:"):
            continue
        now = found[-1]
        assert each.tag == now.named["commitTag"]
        if each.uri.startswith("urn:webarcfs:met:") or each.fields.get("Webarcfs-Again") == "yes":
            continue
        is_carried = each.fields.get("Webarcfs-Carried") == "yes"
        is_seen, only_seen = each.fields.get("Webarcfs-Unseen") != "yes", each.fields.get("Webarcfs-Seen") == "yes"
        if "Webarcfs-Redirect" in each.fields:
            line = each.fields["Webarcfs-Redirect"].replace("%09", "\t")
            assert line.partition("\t")[0] == (each.fields["Webarcfs-URL"] if is_carried else each.uri)
            now.redirects += [] if only_seen else [line]
            now.seen_redirects += [line] if is_seen else []
            continue
        folder = f"{each.path}/" if each.path else ""
        if "Webarcfs-Data" in each.fields:
            names = [f"{folder}{_path(each.fields['Webarcfs-Data'])}"]
            bodies = {names[0]: each.body}
            if each.kind == "revisit" or is_carried:
                assert before is not None
                bodies = {name: before.files[name] for name in (*names, f"{folder}data.xml")}
                head = f"{folder}headers.http"
                bodies |= {head: before.files[head]} if head in before.files else {}
        else:
            name = f"{folder}{_path(each.fields['Webarcfs-File'])}"
            bodies = {name: before.files[name] if each.kind == "revisit" and before is not None else each.body}
        now.files |= {} if only_seen else bodies
        now.seen |= bodies if is_seen else {}
    return found


def _path(text: str) -> str:
    return os.fsdecode(unquote_to_bytes(text))
