"""The name of the crawl that a file is of, where its crawler puts each crawl into a folder or file of its own. Pure."""

from __future__ import annotations

import re

#: Heritrix: `jobs/<job>/<launch>/warcs/<file>`, the launch being the time at which it began.
_LAUNCH = re.compile(r"\d{14}|\d{17}", re.ASCII)
_OF_LAUNCH = frozenset({"warcs", "arcs"})
#: ArchiveBox: `archive/<snapshot>/warc/<file>`, the snapshot being a Unix time.
_SNAPSHOT = re.compile(r"\d{9,11}(\.\d+)?", re.ASCII)
_OF_SNAPSHOT = "warc"
#: How long a name may be that a record of a file gives.
_LONGEST = 200


def crawl_of_path(path: str) -> str:
    """Return the name of the crawl whose folder a file is in; empty for a file of no such folder."""
    *_, job, folder, inner, _ = ("", "", "", *path.split("/"))
    if inner in _OF_LAUNCH and _LAUNCH.fullmatch(folder):
        return f"heritrix:{job}/{folder}"
    if inner == _OF_SNAPSHOT and _SNAPSHOT.fullmatch(folder):
        return f"archivebox:{job}/{folder}"
    return ""


def crawl_of_part(value: str) -> str:
    """Return the name of the crawl that the field `isPartOf` of a warcinfo record gives; empty without one."""
    words = " ".join(value.split())
    return f"part-of:{words[:_LONGEST]}" if words else ""
