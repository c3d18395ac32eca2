"""What a browser showed of a page: its text, its DOM, a picture and its title, as a crawl with a browser recorded them.

Such a form belongs to one version of one URL. Two routes of an application share one shell and show other texts, and
the same shell shows another text at the next crawl. So data.xml names it: `rendered` is git's id of a tree with the
files of the form. `refs/forms/rendered` of the domain has the trees at `<xx>/<tree>/`, where `xx` are the first two
hex digits, so that git and backups keep them. The document itself stays as the server sent it.

    rendered.txt                        the text, UTF-8
    rendered.html                       the DOM as HTML, UTF-8
    rendered.png, .jpg or .webp         the picture
    rendered.json                       the title; what each part was taken from, and when the page was shown

The text alone decides whether a page changed. A DOM, a picture and a title differ at each time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import FORMS, Repository
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.picture_kinds import PICTURE_KINDS, picture_kind
from webarcfs.archive.system.files import blob_id

REF: Final = f"{FORMS}rendered"
TEXT: Final = "rendered.txt"
HTML: Final = "rendered.html"
DESCRIPTION: Final = "rendered.json"
#: Bytes of a text, of a DOM and of a picture that are kept; a larger one is skipped, and an import says so.
LONGEST_TEXT: Final = 10_000_000
LARGEST_HTML: Final = 20_000_000
LARGEST_PICTURE: Final = 1 << 25
#: Bytes of a description that are read.
LONGEST_DESCRIPTION: Final = 1 << 16
#: What the parts are taken from that our own browser showed.
CRAWLED: Final = "browser"
#: What a picture of the window is taken from; an import may have one of the whole page, or a small one.
OF_WINDOW: Final = frozenset({CRAWLED, "urn:view"})
_PICTURE: Final = re.compile(r"rendered\.(?:png|jpg|webp)")


@dataclass(frozen=True, slots=True)
class RenderedForm:
    """What a browser showed of a page. A part that is empty is not there.

    `html` is the DOM as HTML, in UTF-8. `text_of`, `html_of`, `picture_of` and `title_of` say what each was taken from
    (`urn:text`, `pages.jsonl`, `browser`); `shown` is the time of the text, or else of what there is, in UTC.
    """

    text: bytes = b""
    picture: bytes = b""
    title: str = ""
    text_of: str = ""
    picture_of: str = ""
    title_of: str = ""
    shown: str = ""
    html: bytes = b""
    html_of: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is no part."""
        return not (self.text or self.html or self.picture or self.title)

    @property
    def has_text(self) -> bool:
        """Whether it says which text the page had. With a DOM and no text, that is none."""
        return bool(self.text or self.html)

    def files(self) -> dict[str, bytes]:
        """Return name → content of its files. The same form has the same bytes."""
        described = {
            "html": self.html_of * bool(self.html),
            "picture": self.picture_of * bool(self.picture),
            "shown": self.shown,
            "text": self.text_of * bool(self.text),
            "title": self.title,
            "titleFrom": self.title_of * bool(self.title),
        }
        fields = {name: value for name, value in described.items() if value}
        files = {DESCRIPTION: json.dumps(fields, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace") + b"\n"}
        if self.text:
            files[TEXT] = self.text
        if self.html:
            files[HTML] = self.html
        if kind := picture_kind(self.picture):
            files[f"rendered.{kind.ending}"] = self.picture
        return files


def mime_type_of(name: str) -> str:
    """Return the MIME type of a file of a form, by its name."""
    if name in (TEXT, HTML):
        return "text/plain" if name == TEXT else "text/html"
    ending = name.rpartition(".")[2]
    return next((kind.mime_type for kind in PICTURE_KINDS if kind.ending == ending), "application/json")


def kind_of(name: str) -> str:
    """Return `text`, `html`, `description` or `picture`, by the name of a file of a form."""
    return {TEXT: "text", HTML: "html", DESCRIPTION: "description"}.get(name, "picture")


def is_name(name: str) -> bool:
    """Return whether a form may have a file of that name."""
    return name in (TEXT, HTML, DESCRIPTION) or _PICTURE.fullmatch(name) is not None


def tree_id(blobs: Mapping[str, str]) -> str:
    """Return git's id of the tree of a form, of name → blob."""
    lines = (b"100644 %b\0%b" % (name.encode("ascii"), bytes.fromhex(blob)) for name, blob in sorted(blobs.items()))
    raw = b"".join(lines)
    return hashlib.sha1(b"tree %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def tree_of(files: Mapping[str, bytes]) -> str:
    """Return git's id of the tree of a form, of name → content."""
    return tree_id({name: blob_id(content) for name, content in files.items()})


def path_of(tree: str, name: str) -> str:
    """Return the path of a file of a form in the tree of `REF`."""
    return f"{tree[:2]}/{tree}/{name}"


def blobs_of(store: Repository, tree: str) -> dict[str, str]:
    """Return name → blob of the files of a form. Raises Damaged where it is not there, or has other files."""
    entries = store.entries(tree)
    strange = [entry.name for entry in entries if entry.is_tree or not is_name(entry.name)]
    if strange or not entries:
        raise Damaged(f"{store.path}: {tree} is no rendered form of a page")
    return {entry.name: entry.oid for entry in entries}


def text_of(store: Repository, tree: str) -> str:
    """Return the text that a browser showed; empty without one. Raises Damaged."""
    blob = blobs_of(store, tree).get(TEXT)
    return "" if blob is None else store.read_short(blob, LONGEST_TEXT).decode("utf-8", "replace")


def text_blob(store: Repository, tree: str) -> str:
    """Return git's id of the text that a browser showed; empty without one. Raises Damaged."""
    return blobs_of(store, tree).get(TEXT, "")


def html_blob(store: Repository, tree: str) -> str:
    """Return git's id of the DOM that a browser showed; empty without one. Raises Damaged."""
    return blobs_of(store, tree).get(HTML, "")


def read_html(store: Repository, tree: str) -> bytes:
    """Return the DOM that a browser showed, as HTML in UTF-8; empty without one. Raises Damaged."""
    blob = html_blob(store, tree)
    return store.read_short(blob, LARGEST_HTML) if blob else b""


def named_at(store: Repository, tag: CommitTag, arc: str) -> str:
    """Return the tree of the form that data.xml of an ARC names in a snapshot; empty where it names none.

    Raises NotFound without such a snapshot, Damaged, InvalidDocument.
    """
    entry = store.find(store.snapshot_tree(tag), f"{arc}/{DATA_XML}")
    return data_xml.metadata(store.read(entry.oid)).rendered if entry is not None and entry.is_document else ""


def title_in(description: bytes) -> str:
    """Return the title in a description; empty where it has none, or cannot be read."""
    return _field_of(description, "title")


def title_origin(description: bytes) -> str:
    """Return what the title in a description was taken from; empty where it does not say that."""
    return _field_of(description, "titleFrom")


def picture_origin(description: bytes) -> str:
    """Return what the picture of a description was taken from; empty where it does not say that."""
    return _field_of(description, "picture")


def _field_of(description: bytes, name: str) -> str:
    if len(description) > LONGEST_DESCRIPTION:
        return ""
    try:
        fields = json.loads(description)
    except (ValueError, RecursionError):
        return ""
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else ""


def lacking(store: Repository, trees: Iterable[str]) -> list[str]:
    """Return which of the forms that documents name are not in `REF`, in order. Raises Damaged."""
    top = store.ref(REF)
    entries = ((tree, None if top is None else store.find(top, f"{tree[:2]}/{tree}")) for tree in sorted(trees))
    return [tree for tree, entry in entries if entry is None or entry.oid != tree]
