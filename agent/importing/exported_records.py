"""The records of an exported snapshot as values, each checked. Pure.

Nothing is taken as a path: the place of a document is that of its URL, and names of additions obey the rules of names.
So a file that someone made up yields nothing that an archive could not have.

What the records name becomes rows of bytes, which sort by domain, time and place. Files may be given in any order, and
one snapshot's records may be in several of them; so all rows are collected first. A row has no more than the id of a
blob, whatever the size of the body.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from urllib.parse import unquote, unquote_to_bytes

from agent.crawl.job_folder import publication_of
from webarcfs.archive.additions.placement import check_names
from webarcfs.archive.config import validators
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.model.arc_paths import DATA_XML, DEEPEST, HEADERS, arc_path, places, split
from webarcfs.archive.model.errors import Damaged, NotPermitted, UrlRefused
from webarcfs.archive.model.metadata import CommitTag, compact_time, now, parse_compact_time
from webarcfs.archive.model.url_lists import Redirect, is_inside, place_of, read_list
from webarcfs.archive.model.urls import domain_of
from webarcfs.warc.request_key import parts_of

# == records, pure ====================================================================================================


#: The fields that only our exports have.
TAG = "webarcfs-commit-tag"
SNAPSHOT = "urn:webarcfs:snapshot:"
ADDITION = "urn:webarcfs:addition:"
MET = "urn:webarcfs:met:"
#: Bytes of a snapshot's record that are read.
LONGEST_SNAPSHOT = 1 << 20
#: Bytes of a list of what a crawl met that are read: of twenty million URLs.
LONGEST_MET = 1 << 26
#: How far clocks may differ: a snapshot of the future would stay the newest one.
_SKEW = timedelta(days=1)
_TREE = re.compile(r"[0-9a-f]{40}")
_SOURCE = re.compile(r"sha256:([0-9a-f]{64})")
_DATA = re.compile(r"data(\.orig)?(\.[a-z0-9]{1,16})?", re.ASCII)
_JOB = re.compile(r"\d{8}T\d{6}-[A-Za-z0-9._-]{1,100}(\+[A-Za-z0-9._-]{1,100})?", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)
#: The words of fields that a snapshot's record may lack.
_WORDS = {
    "errors": ("kept", "no"), "copies": ("kept", "no"), "resources": ("kept", "alone"), "secrets": ("shown",),
    "met": ("listed", "unknown"),
}  # fmt: skip
_TAB = "%09"
_NO_NAME = "-"
_TIME = len("2026-11-21T02:00:00Z")


@dataclass(frozen=True, slots=True)
class NamedSnapshot:
    """A snapshot as its record names it. `before` is the tree that its revisits refer to; `time` is in seconds.

    `met_is_listed`: there is a list of what its crawl met unchanged.
    """

    tag: CommitTag
    publication: str
    job: str
    complete: bool
    held: bool
    errors: bool
    copies: bool
    resources: str
    sequence: int
    tree: str
    seen: str
    before: str
    sources: tuple[str, ...]
    time: int
    ended: tuple[str, ...] = ()
    imported_by: str = ""
    secrets: bool = False
    met_is_listed: bool = False
    patch: str = ""


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document at `arc`, in the file `name`. `stored`: its body is in this record; otherwise it is that of `before`.

    `seen`: the publication saw it.
    """

    tag: CommitTag
    arc: str
    name: str
    stored: bool
    seen: bool


@dataclass(frozen=True, slots=True)
class NamedFile:
    """Another file of an ARC: data.xml, the head, an addition. `only_seen`: it is what the publication saw."""

    tag: CommitTag
    arc: str
    name: str
    stored: bool
    seen: bool
    only_seen: bool = False


@dataclass(frozen=True, slots=True)
class NamedRedirect:
    """A line of a list of redirects. `only_seen`: of the list that the publication saw."""

    tag: CommitTag
    redirect: Redirect
    seen: bool
    only_seen: bool = False


@dataclass(frozen=True, slots=True)
class NamedMet:
    """The list of what a snapshot's crawl met unchanged."""

    tag: CommitTag


@dataclass(frozen=True, slots=True)
class NamedForm:
    """A file of what a browser showed of a document; `tree` is the id of the whole form."""

    tag: CommitTag
    arc: str
    tree: str
    name: str
    stored: bool = True


Named = NamedDocument | NamedFile | NamedRedirect | NamedMet | NamedForm


def is_snapshot(fields: Mapping[str, str]) -> bool:
    """Return whether the record with these fields names a snapshot."""
    return fields.get("warc-type") == "metadata" and _uri(fields).startswith(SNAPSHOT)


def snapshot(fields: Mapping[str, str], block: bytes) -> NamedSnapshot:
    """Return what a snapshot's record names. Raises Damaged for anything that an archive could not have."""
    lines = [line.partition(":") for line in block.decode("utf-8", "replace").splitlines() if line.strip()]
    pairs = [(name.strip().lower(), value.strip()) for name, _, value in lines]
    values = dict(pairs)
    tag = _tag(values.get("committag", ""))
    if _uri(fields) != f"{SNAPSHOT}{tag}":
        raise Damaged(f"the record of {_uri(fields)} names {tag}")
    sources, ended = ([value for name, value in pairs if name == field_name] for field_name in ("source", "source-end"))
    faults = [
        *(f"{name} {values.get(name)!r}" for name in ("complete", "held") if values.get(name) not in ("yes", "no")),
        *(f"{name} {values[name]!r}" for name, words in _WORDS.items() if values.get(name, "") not in {*words, ""}),
        *(
            f"{name} {values.get(name)!r}"
            for name in ("sequence", "time")
            if not _NUMBER.fullmatch(values.get(name, ""))
        ),
        *(
            f"{name} {values[name]!r}"
            for name in ("seen", "before")
            if values.get(name) and not _TREE.fullmatch(values[name])
        ),
        *([] if _TREE.fullmatch(values.get("tree", "")) else [f"tree {values.get('tree')!r}"]),
        *(f"source {source!r}" for source in (*sources, *ended) if not _SOURCE.fullmatch(source)),
        *_strange_names(*(values.get(name, "") for name in ("publication", "job", "patch", "import"))),
    ]
    if not faults and int(values["time"]) > (now() + _SKEW).timestamp():
        faults.append(f"time {values['time']}")
    if faults:
        raise Damaged(f"{tag}: its record cannot be right: {', '.join(faults)}")
    return NamedSnapshot(
        tag=tag,
        publication=values["publication"],
        job=values.get("job", ""),
        patch=values.get("patch", ""),
        complete=values["complete"] == "yes",
        held=values["held"] == "yes",
        errors=values.get("errors") == "kept",
        copies=values.get("copies") == "kept",
        resources=values.get("resources", ""),
        secrets=values.get("secrets") == "shown",
        sequence=int(values["sequence"]),
        tree=values["tree"],
        seen=values.get("seen", "") if values.get("seen") != values["tree"] else "",
        before=values.get("before", ""),
        sources=tuple(source.partition(":")[2] for source in sources),
        time=int(values["time"]),
        ended=tuple(source.partition(":")[2] for source in ended),
        imported_by=values.get("import", ""),
        met_is_listed=values.get("met") == "listed",
    )


def _strange_names(publication: str, *jobs: str) -> list[str]:
    try:
        validators.name(publication)
    except ValueError:
        return [f"publication {publication!r}"]
    sound = [job for job in jobs if not job or (_JOB.fullmatch(job) and publication_of(job) == publication)]
    return [f"job {job!r}" for job in jobs if job not in sound]


def named(fields: Mapping[str, str]) -> Named | None:
    """Return what a record with these fields has; None for one that names no tree, such as a warcinfo.

    Raises Damaged for anything that an archive could not have.
    """
    if TAG not in fields or _says(fields, "again"):
        return None
    tag = _tag(fields[TAG])
    kind, uri = fields.get("warc-type", "").lower(), _uri(fields)
    if kind == "metadata" and uri == f"{MET}{tag}":
        return NamedMet(tag)
    if "webarcfs-rendered" in fields:
        return _form(tag, uri, fields)
    if kind == "metadata" and _says(fields, "carried"):
        kind, uri = "revisit", fields.get("webarcfs-url", "")  # of the tree it says what a revisit does
    try:
        return _part(tag, kind, uri, fields)
    except (UrlRefused, NotPermitted, ValueError) as error:
        raise Damaged(f"{tag}: {uri}: {error}") from None


def _form(tag: CommitTag, uri: str, fields: Mapping[str, str]) -> NamedForm:
    tree, name = fields["webarcfs-rendered"], fields.get("webarcfs-file", "")
    if not _TREE.fullmatch(tree) or not rendered_forms.is_name(name):
        raise Damaged(f"{tag}: {uri}: {name!r} of {tree!r} is no part of what a browser showed")
    return NamedForm(tag, unquote(fields.get("webarcfs-path", "")), tree, name)


def _part(tag: CommitTag, kind: str, uri: str, fields: Mapping[str, str]) -> Named | None:
    seen, only_seen = not _says(fields, "unseen"), _says(fields, "seen")
    if kind in ("response", "revisit") and "webarcfs-redirect" in fields:
        return NamedRedirect(tag, _redirect(tag, uri, fields["webarcfs-redirect"]), seen, only_seen)
    if kind in ("resource", "revisit") and uri.startswith(ADDITION):
        arc, name = _addition(tag, uri, fields.get("webarcfs-file", ""))
        return NamedFile(tag, arc, name, kind == "resource", seen, only_seen)
    if kind in ("response", "resource", "revisit"):
        name = fields.get("webarcfs-data", "")
        if not _DATA.fullmatch(name) or name == DATA_XML:
            raise Damaged(f"{tag}: {uri}: {name!r} is no name of a data file")
        return NamedDocument(tag, _arc(tag, _url(uri, fields), fields), name, kind != "revisit", seen)
    if kind == "metadata" and fields.get("webarcfs-file") in (DATA_XML, HEADERS):
        return NamedFile(
            tag,
            _arc(tag, fields.get("webarcfs-url") or uri, fields),
            fields["webarcfs-file"],
            True,
            seen,
            only_seen,
        )
    return None


def _says(fields: Mapping[str, str], mark: str) -> bool:
    return fields.get(f"webarcfs-{mark}", "").lower() == "yes"


def _uri(fields: Mapping[str, str]) -> str:
    return fields.get("warc-target-uri", "").strip("<> ")


def _tag(text: str) -> CommitTag:
    """Return a commitTag whose domain a URL could have, and whose time a crawl."""
    tag = CommitTag.parse(text)
    try:
        sound = any(domain_of(f"{scheme}://{tag.domain}/") == tag.domain for scheme in ("http", "https"))
    except UrlRefused:
        sound = False
    if not sound:
        raise Damaged(f"{text!r}: no URL has the domain {tag.domain!r}")
    if not _old_enough(tag.crawl_time):
        raise Damaged(f"{text!r} is a time of the future")
    return tag


def _old_enough(time: datetime) -> bool:
    return time <= now() + _SKEW


def _url(uri: str, fields: Mapping[str, str]) -> str:
    """Return the URL by which the archive had a document: one that is made of the request, where that was no GET."""
    key = fields.get("webarcfs-url", "")
    parts = parts_of(key)
    return key if parts is not None and parts.url == uri else uri


def _arc(tag: CommitTag, url: str, fields: Mapping[str, str]) -> str:
    """Return the place of a URL in its domain: its second name where the record says so."""
    domain, arc = split(arc_path(url))
    if domain != tag.domain:
        raise Damaged(f"{tag}: {url} is of another domain")
    second = places(url)[0]
    return second if unquote(fields.get("webarcfs-path", "")) == second else arc


def _addition(tag: CommitTag, uri: str, file: str) -> tuple[str, str]:
    """Return the ARC of an addition, and its path inside that."""
    path, name = (unquote_to_bytes(text).decode("utf-8", "surrogateescape") for text in (_path_in(tag, uri), file))
    arc, parts = path.removesuffix(f"/{name}"), name.split("/")
    if arc in ("", path):
        raise Damaged(f"{tag}: {uri}: {file!r} is no file below it")
    check_names(parts)
    for folder in arc.split("/"):
        check_names([_NO_NAME, folder])
    if DATA_XML in parts or len(parts) > DEEPEST or is_inside(arc):
        raise Damaged(f"{tag}: {uri}: an addition cannot have the name {file!r}")
    return arc, name


def _path_in(tag: CommitTag, uri: str) -> str:
    tagged = f"{ADDITION}{tag}:"
    if not uri.startswith(tagged):
        raise Damaged(f"{tag}: {uri} is an addition of another snapshot")
    return uri.removeprefix(tagged)


def _redirect(tag: CommitTag, url: str, text: str) -> Redirect:
    """Return a redirect from its line, in which `%09` is a tab; `url` is its first field."""
    rest = text.removeprefix(f"{url}{_TAB}")
    status, target, time = rest[:3], rest[6 : -_TIME - 3], rest[-_TIME:]
    if "\0" in text or text == rest or rest != _TAB.join((status, target, time)):
        raise Damaged(f"{tag}: {text[:200]!r} is no redirect of {url}")
    redirect = read_list(f"{url}\t{status}\t{target}\t{time}\n".encode("ascii", "replace"), place_of(url))[0]
    if domain_of(redirect.url) != tag.domain:
        raise Damaged(f"{tag}: {url} is of another domain")
    return redirect


# == rows, pure =======================================================================================================


_ARCS, _LISTS = b"1", b"2"
_DOCUMENT, _FILE = b"1", b"2"
_SEEN, _ONLY_SEEN = b"s", b"o"
#: The rows of one snapshot, in parts.
Rows = Iterator[list[bytes]]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an ARC: its blob, None for that of the tree before; `seen` by the publication, or `only_seen`."""

    blob: str | None
    seen: bool
    only_seen: bool = False


@dataclass(slots=True)
class ExportedArc:
    """The rows of one ARC: name → files. `data` is the name of its data file, empty without its record."""

    path: str
    data: str = ""
    seen: bool = True
    files: dict[str, ExportedFile] = field(default_factory=dict)
    seen_files: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Lines:
    """The lines of one list of redirects, in their order, and those that the publication saw."""

    place: str
    lines: list[bytes] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)


def row_of(part: NamedDocument | NamedFile | NamedRedirect, blob: str | None) -> bytes:
    """Return the row of what a record names; `blob` is the id of its body, None where the record has none."""
    oid = (blob or "").encode()
    # No part contains a zero byte; so the rows of a place are together, and places sort by their bytes.
    match part:
        case NamedDocument():
            flags = _SEEN if part.seen else b""
            parts = [_ARCS, os.fsencode(part.arc), _DOCUMENT, part.name.encode(), oid, flags]
        case NamedFile():
            flags = _ONLY_SEEN if part.only_seen else _SEEN if part.seen else b""
            parts = [_ARCS, os.fsencode(part.arc), _FILE, os.fsencode(part.name), oid, flags]
        case NamedRedirect():
            flags = _ONLY_SEEN if part.only_seen else _SEEN if part.seen else b""
            parts = [_LISTS, place_of(part.redirect.url).encode(), str(part.redirect).encode(), flags]
    return b"\0".join([*_key(part.tag), *parts])


def form_row(part: NamedForm, blob: str) -> bytes:
    """Return the row of a file of a form; rows sort by domain, form and name."""
    return b"\0".join(text.encode() for text in (part.tag.domain, part.tree, part.name, blob))


def forms_by_domain(rows: Iterable[bytes]) -> Iterator[tuple[str, Iterator[tuple[str, dict[str, str]]]]]:
    """Yield each domain with its forms: the id of the tree, and name → blob. To be read in order."""
    split_rows = ([part.decode() for part in row.split(b"\0")] for row in rows)
    for domain, own in groupby(split_rows, key=lambda parts: parts[0]):
        yield domain, _forms(own)


def _forms(rows: Iterable[list[str]]) -> Iterator[tuple[str, dict[str, str]]]:
    for tree, files in groupby(rows, key=lambda parts: parts[1]):
        yield tree, {parts[2]: parts[3] for parts in files}


def by_snapshot(rows: Iterable[bytes], tags: Collection[CommitTag]) -> Iterator[tuple[CommitTag, Rows]]:
    """Yield the snapshots, domain by domain, oldest first, with their rows, which must be read before the next.

    Those in `tags` come as well if they have none: a domain may have had nothing at the time.
    """
    left = iter(sorted(tags, key=_key))
    next_ = next(left, None)
    split_rows = (row.split(b"\0") for row in rows)
    for key, own in groupby(split_rows, key=lambda parts: (parts[0], parts[1])):
        while next_ is not None and _key(next_) < key:
            yield next_, iter(())
            next_ = next(left, None)
        if next_ is not None and _key(next_) == key:
            next_ = next(left, None)
        domain, time = key
        yield CommitTag(parse_compact_time(time.decode()), domain.decode()), (parts[2:] for parts in own)
    while next_ is not None:
        yield next_, iter(())
        next_ = next(left, None)


def _key(tag: CommitTag) -> tuple[bytes, bytes]:
    return tag.domain.encode(), compact_time(tag.crawl_time).encode()


def read_places(rows: Rows) -> Iterator[ExportedArc | Lines]:
    """Yield the ARCs of a snapshot in order of the bytes of their paths, then its lists of redirects."""
    for (section, place), own in groupby(rows, key=lambda parts: (parts[0], parts[1])):
        if section == _LISTS:
            redirects = Lines(place.decode())
            for _, _, line, flags in own:
                _add_line(redirects, line, flags)
            yield redirects
        else:
            arc = ExportedArc(os.fsdecode(place))
            for parts in own:
                _add_file(arc, parts)
            yield arc


def _add_line(redirects: Lines, line: bytes, flags: bytes) -> None:
    into = {_SEEN: (redirects.lines, redirects.seen), _ONLY_SEEN: (redirects.seen,)}
    for lines in into.get(flags, (redirects.lines,)):
        if line not in lines[-1:]:  # the same record may be in two of the files
            lines.append(line)


def _add_file(arc: ExportedArc, parts: list[bytes]) -> None:
    _, _, kind, raw, oid, flags = parts
    name, blob = os.fsdecode(raw), oid.decode() or None
    if kind == _DOCUMENT:
        arc.data, arc.seen = name, flags == _SEEN
    elif flags == _ONLY_SEEN:
        if blob:
            arc.seen_files[name] = blob
        return
    earlier = arc.files.get(name)
    arc.files[name] = ExportedFile(blob or (earlier.blob if earlier else None), flags == _SEEN)
