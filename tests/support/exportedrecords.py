"""WARC records of a snapshot as `webarc export` writes them, made by hand: for what the exporter would never write.

`snapshot_records` writes them by the contract in README's words and no more; the tests change them before they are
imported. What the exporter itself writes is tested with it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote_from_bytes

from webarcfs.archive.document import data_xml
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS
from webarcfs.archive.model.metadata import utc
from webarcfs.archive.model.url_lists import write_met_list
from webarcfs.export.selection import Exported, documents, listed_redirects


@dataclass(frozen=True)
class Made:
    """A record: its fields, and its block."""

    kind: str
    uri: str
    fields: Mapping[str, str] = field(default_factory=dict)
    block: bytes = b""

    def having(self, **fields: str) -> Made:
        """The same with other fields: `Webarcfs_Path` for `Webarcfs-Path`."""
        return replace(self, fields={**self.fields, **{name.replace("_", "-"): text for name, text in fields.items()}})

    def __bytes__(self) -> bytes:
        digest = base64.b32encode(hashlib.sha1(self.block).digest()).decode()
        fields = {
            "WARC-Type": self.kind,
            "WARC-Target-URI": self.uri,
            "WARC-Record-ID": "<urn:uuid:00000000-0000-0000-0000-000000000000>",
            "WARC-Date": "2026-01-01T00:00:00Z",
            "WARC-Block-Digest": f"sha1:{digest}",
            **self.fields,
            "Content-Length": str(len(self.block)),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return b"WARC/1.1\r\n" + head.encode("utf-8", "surrogateescape") + b"\r\n" + self.block + b"\r\n\r\n"


def write(path: Path, made: Iterable[Made]) -> Path:
    """Write records into a file, gzip a record."""
    with path.open("wb") as file:
        for each in made:
            file.write(gzip.compress(bytes(each), 1, mtime=0))
    return path


def snapshot_records(each: Exported) -> Iterator[Made]:
    """The records of a snapshot."""
    yield named(each)
    for found in documents(each.store, each.tree, each.before, each.seen):
        assert found.is_whole
        url = data_xml.metadata(each.store.read(found.data_xml)).url
        own = {"Webarcfs-Commit-Tag": str(each.tag), "Webarcfs-Path": found.path}
        unseen = {"Webarcfs-Unseen": "yes"} if found.seen is None else {}
        before, seen = found.before or {}, found.seen or {}
        kept = before.get(found.data) == found.files[found.data]
        body = b"HTTP/1.1 200 OK\r\n\r\n" + (b"" if kept else each.store.read(found.files[found.data]))
        kind = "revisit" if kept else "response"
        yield Made(kind, url, {**own, **unseen, "Webarcfs-Data": found.data}, body)
        for name in (DATA_XML, HEADERS):
            if not kept or before.get(name) != found.files[name]:
                uri, fields = (
                    f"urn:webarcfs:file:{each.tag}:{name}",
                    {**own, "Webarcfs-URL": url, "Webarcfs-File": name},
                )
                yield Made("metadata", uri, fields, each.store.read(found.files[name]))
        if found.seen is not None and seen[DATA_XML] != found.data_xml:
            uri = f"urn:webarcfs:file:{each.tag}:{DATA_XML}"
            fields = {**own, "Webarcfs-URL": url, "Webarcfs-File": DATA_XML, "Webarcfs-Seen": "yes"}
            yield Made("metadata", uri, fields, each.store.read(seen[DATA_XML]))
        for path, blob in found.additions():
            place, name = (quote_from_bytes(text.encode("utf-8", "surrogateescape")) for text in (found.path, path))
            uri = f"urn:webarcfs:addition:{each.tag}:{place}/{name}"
            fields = {**own, "Webarcfs-File": name} | ({"Webarcfs-Unseen": "yes"} if seen.get(path) != blob else {})
            yield (
                Made("revisit", uri, fields)
                if before.get(path) == blob
                else Made("resource", uri, fields, each.store.read(blob))
            )
    for listed in listed_redirects(each.store, each.tree, each.before, each.seen):
        line = str(listed.redirect).replace("\t", "%09")
        fields = {"Webarcfs-Commit-Tag": str(each.tag), "Webarcfs-Redirect": line}
        if listed.only_seen or not listed.is_seen:
            fields["Webarcfs-Seen" if listed.only_seen else "Webarcfs-Unseen"] = "yes"
        yield Made("revisit" if listed.was_there else "response", listed.redirect.url, fields, b"HTTP/1.1 301 \r\n\r\n")
    met = each.met()
    if met is not None:
        own = redirect_lists.narrowed(each.store, met, each.met_in, each.seen or each.tree)
        fields = {"Webarcfs-Commit-Tag": str(each.tag)}
        yield Made("metadata", f"urn:webarcfs:met:{each.tag}", fields, write_met_list(own))


def named(each: Exported, **other: str) -> Made:
    """The record that names a snapshot, with `other` values in it."""
    message = each.message
    said = {
        "commitTag": str(each.tag),
        "publication": message.publication,
        "job": message.job,
        "complete": "yes" if message.complete else "no",
        "held": "yes" if message.is_held else "no",
        "sequence": str(message.sequence),
        "tree": each.tree,
        "time": str(each.time),
        **({"errors": "kept"} if message.has_errors else {}),
        **({"seen": each.seen} if each.seen else {}),
        **({"before": each.before} if each.before else {}),
        "met": "listed" if message.met else "unknown",
        **other,
    }
    lines = [f"{name}: {value}" for name, value in said.items() if value]
    lines += [f"source: {each}" for each in message.all("Source")]
    fields = {"Webarcfs-Commit-Tag": str(each.tag), "Content-Type": "application/warc-fields"}
    date = f"{utc(each.tag.crawl_time):%Y-%m-%dT%H:%M:%SZ}"
    block = "".join(f"{line}\r\n" for line in lines).encode()
    return Made("metadata", f"urn:webarcfs:snapshot:{each.tag}", {**fields, "WARC-Date": date}, block)
