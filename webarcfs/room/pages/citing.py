"""`/cite/<digits>/<url>`: how a page is cited, as text and for programs that keep references.

`/cite.bib/…` is BibTeX, `/cite.ris/…` RIS, `/cite.json/…` CSL-JSON. A citation has the title of the page, when the
server sent it as far as the reader may know that, the archive's name, and an address that always names this capture.

Titles are of others. A line break in one would be a further field of RIS, and a brace would end a field of BibTeX:
white space is folded, control characters are dropped, and what means something to LaTeX is written in its words. What
changes the direction of text is dropped as well, since it would turn around what follows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import CET, from_epoch
from webarcfs.archive.model.urls import domain_of
from webarcfs.room.pages.archived import missing, redirect
from webarcfs.room.replay import memento
from webarcfs.room.replay.memento import Located
from webarcfs.room.replay.replay_url import (
    Modifier,
    Refused,
    Replay,
    cite_path,
    digits_of,
    parse,
    replay_path,
)
from webarcfs.room.views import PageLink
from webarcfs.room.visit import Visit
from webarcfs.web.language import moment, msgid, translate
from webarcfs.web.rendering import texts_of

# == citation, pure ===================================================================================================


#: Control characters, halves of characters, and what changes the direction of the text behind it.
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
#: What LaTeX would not print as it is. BibTeX counts braces also behind a backslash, so they have names.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
        **{character: rf"\{character}" for character in "$&%#_"},
    }
)  # fmt: skip
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")
_COPY_OF = msgid("Archived copy of %(url)s, captured on %(when)s.")


@dataclass(frozen=True, slots=True)
class Citation:
    """What is cited: a page of an archive.

    `title` is empty where the page has none. `path` is the permanent address within the room, `address` the whole.
    """

    title: str
    url: str
    captured: datetime
    path: str
    address: str

    @property
    def name(self) -> str:
        """The title, or the URL of a page without one."""
        return self.title or self.url

    @property
    def day(self) -> str:
        """The day of the capture, by the archive's clock."""
        return f"{self.captured.astimezone(CET):%Y-%m-%d}"

    @property
    def key(self) -> str:
        """A name for the citation: of a file, and of an entry of BibTeX."""
        host = _NOT_IN_NAMES.sub("-", domain_of(self.url)).strip("-")
        return f"{host}-{digits_of(int(self.captured.timestamp()))}"


@dataclass(frozen=True, slots=True)
class ArchiveNames:
    """What the archive is called in a language: its own name, and whose it is, which may be empty."""

    title: str
    institution: str


def plain(text: str) -> str:
    """Return a text in one line, without what programs or the direction of the text could take for something else."""
    return " ".join(_UNWANTED.sub("", " ".join(text.split())).split())


def as_bibtex(citation: Citation, names: ArchiveNames, note: str) -> str:
    """Return an entry of BibTeX. The doubled braces keep the case of the title; `url` is written as it is.

    `year` and `month` are for styles of BibTeX, `date` is for biblatex and Zotero.
    """
    captured = citation.captured.astimezone(CET)
    owner = ", ".join(name for name in (names.title, names.institution) if name)
    fields = {
        "title": f"{{{{{citation.name.translate(_LATEX)}}}}}",
        "howpublished": f"{{{owner.translate(_LATEX)}}}",
        "date": f"{{{citation.day}}}",
        "year": f"{{{captured.year:04}}}",
        "month": _MONTHS[captured.month - 1],
        "url": f"{{{citation.address}}}",
        "note": f"{{{note.translate(_LATEX)}}}",
    }
    lines = ",\n".join(f"  {name} = {value}" for name, value in fields.items())
    return f"@misc{{{citation.key},\n{lines}\n}}\n"


def as_ris(citation: Citation, names: ArchiveNames, note: str) -> str:
    """Return a record of RIS: a line for each field, which has no line break of its own."""
    fields = [
        ("TY", "ELEC"),
        ("TI", citation.name),
        ("T2", names.title),
        ("PB", names.institution),
        ("PY", citation.day[:4]),
        ("DA", citation.day.replace("-", "/")),
        ("UR", citation.address),
        ("N1", note),
        ("ER", ""),
    ]
    return "".join(f"{tag}  - {value}\r\n" for tag, value in fields if value or tag == "ER")


def as_csl(citation: Citation, names: ArchiveNames, note: str) -> str:
    """Return an item of CSL-JSON, in a list as programs read it."""
    item = {
        "id": citation.key,
        "type": "webpage",
        "title": citation.name,
        "container-title": names.title,
        "publisher": names.institution or names.title,
        "issued": {"date-parts": [[int(part) for part in citation.day.split("-")]]},
        "URL": citation.address,
        "note": note,
    }
    return json.dumps([item], ensure_ascii=False, indent=2) + "\n"


#: The forms of files: their media types, and what makes them.
FORMS = {
    "bib": ("application/x-bibtex; charset=utf-8", as_bibtex),
    "ris": ("application/x-research-info-systems; charset=utf-8", as_ris),
    "json": ("application/vnd.citationstyles.csl+json", as_csl),
}
_LABELS = {"bib": "BibTeX", "ris": "RIS", "json": "CSL-JSON"}


# == pages ============================================================================================================


def citation_of(visit: Visit, located: Located, capture: VisibleCapture, captured: int) -> Citation:
    """Return the citation of what a URL shows in a state; `captured` is the time that the reader is told."""
    path = _permanent_path(visit, located, capture, captured)
    return Citation(plain(capture.title), located.url, from_epoch(captured), path, visit.base + path)


def _permanent_path(visit: Visit, located: Located, capture: VisibleCapture, captured: int) -> str:
    """Return the address by the time of the capture, if that names it alone; else the one that names what is shown."""
    again = memento.locate(visit.services, located.url, captured)
    shown = again.state.capture
    is_same = shown is not None and (shown.blob, shown.target) == (capture.blob, capture.target)
    is_named = is_same and again.named == captured
    seconds = captured if is_named or located.named is None else located.named
    return replay_path(digits_of(seconds), Modifier.FRAME, located.url)


def page(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show how a page is cited. Raises NotFound, UsageError.

    The digits of a snapshot mean what its host had then, and those of a capture this very capture: so a page that was
    opened `in_snapshot` is cited by the time of its capture, and readers are told that both are one version.
    """
    citation = _asked(visit, "")
    if isinstance(citation, Response):
        return citation
    digits, asked = citation.path.split("/", 3)[2], visit.raw_path.split(b"/", 3)[2].decode()
    in_snapshot = "" if asked == digits else visit.base + replay_path(asked, Modifier.FRAME, citation.url)
    return visit.page(
        "cite.html",
        citation=citation,
        in_snapshot=in_snapshot,
        note=_note(visit, citation),
        files=[PageLink(cite_path(digits, citation.url, form), label) for form, label in _LABELS.items()],
    )


def file(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the citation of a page as a file. Raises NotFound, UsageError."""
    form = path_params["form"]
    citation = _asked(visit, form)
    if isinstance(citation, Response):
        return citation
    texts = texts_of(visit.services.archive, visit.language)
    title = plain(texts.get("title", "")) or translate(msgid("Web archive"), visit.language)
    names = ArchiveNames(title, plain(texts.get("institution", "")))
    media_type, write = FORMS[form]
    body = write(citation, names, _note(visit, citation))
    response = visit.file(body.encode(), media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{citation.key}.{form}"'
    response.headers["Vary"] = "Accept-Language"
    return response


def _note(visit: Visit, citation: Citation) -> str:
    values = {"url": citation.url, "when": moment(citation.captured, visit.language)}
    return translate(_COPY_OF, visit.language) % values


def _asked(visit: Visit, form: str) -> Citation | Response:
    """Return the citation that is asked for; or where it belongs, or why there is no such page, as the frame says."""
    place = visit.raw_path.split(b"/", 2)[2]
    asked = parse(b"/web/" + place, visit.query)
    if isinstance(asked, Refused):
        raise UsageError(asked.reason)
    if not isinstance(asked, Replay) or asked.modifier is not Modifier.FRAME:
        raise NotFound("a page is cited by its time and its URL")
    located = memento.locate(visit.services, asked.url, asked.seconds)
    elsewhere = memento.other_place(visit, located, asked) or (asked.location if asked.must_redirect else "")
    if elsewhere:
        digits, url = elsewhere.split("/", 3)[2:]
        return redirect(visit, cite_path(digits, url, form), asked.url)
    capture = located.state.capture
    if capture is None or located.seq is None:
        return missing(visit, located)
    if capture.is_redirect:
        return redirect(visit, asked.location, asked.url)
    history = visit.services.captures.history(located.url)
    shown = memento.shown_times(history, capture, located.seq)
    return citation_of(visit, located, capture, shown.captured)
