"""The name of the crawl that a capture is of, where its crawler names it: by a folder, a file or a record. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

#: Heritrix: `jobs/<job>/<launch>/warcs/<file>`, the launch being the time at which it began.
_LAUNCH = re.compile(r"\d{14}|\d{17}", re.ASCII)
_OF_LAUNCH = frozenset({"warcs", "arcs"})
#: ArchiveBox: `archive/<snapshot>/warc/<file>`, the snapshot being a Unix time.
_SNAPSHOT = re.compile(r"\d{9,11}(\.\d+)?", re.ASCII)
_OF_SNAPSHOT = "warc"
#: A field of a warcinfo record (WARC 1.1, section 6.2): the collection that its records are of.
_PART_OF = re.compile(rb"^isPartOf[ \t]*:(.*)$", re.MULTILINE | re.IGNORECASE)
#: In a warcinfo record of our exports, which are of many crawls.
_OF_AN_EXPORT = re.compile(rb"^webarcfs-selection:", re.MULTILINE)
#: How long a name may be that a record of a file gives, and how much of its file's digest a file's name has.
_LONGEST, _DIGITS = 200, 8


class CrawlsBy(StrEnum):
    """What makes captures one crawl."""

    AUTO = "auto"
    ONE = "one"
    FILE = "file"


def crawl_name(
    crawls: CrawlsBy, *, file: str, digest: str, path: str, container: str = "", collection: str = ""
) -> str:
    """Return the name of the crawl of a capture; empty where pauses tell crawls apart.

    `file` is the name of its file with this digest and path; `container` what holds a whole crawl, as a WACZ does;
    `collection` what its warcinfo record says that it is a part of.
    """
    if crawls is CrawlsBy.ONE:
        return "all files"
    if crawls is CrawlsBy.FILE:
        return f"{file} {digest[:_DIGITS]}"
    if container:
        return f"{container} {digest[:_DIGITS]}"
    return crawl_of_path(path) or collection


def crawl_of_path(path: str) -> str:
    """Return the name of the crawl whose folder a file is in; empty for a file of no such folder."""
    *_, job, folder, inner, _ = ("", "", "", *path.split("/"))
    if inner in _OF_LAUNCH and _LAUNCH.fullmatch(folder):
        return f"{job}/{folder}"
    if inner == _OF_SNAPSHOT and _SNAPSHOT.fullmatch(folder):
        return f"{job}/{folder}"
    return ""


def is_of_export(block: bytes) -> bool:
    """Return whether a warcinfo record is of an export of ours: that has many crawls, which pauses tell apart."""
    return _OF_AN_EXPORT.search(block) is not None


def part_of(block: bytes) -> str:
    """Return what the block of a warcinfo record says that its records are a part of; empty if it does not say it."""
    match = None if is_of_export(block) else _PART_OF.search(block)
    words = "" if match is None else " ".join(match[1].decode("utf-8", "replace").split())
    return words[:_LONGEST]
