"""The columns of datasets: names, types, meanings, and how far a name means what it means elsewhere. Pure.

Names are those of the Archives Unleashed Toolkit (1.1) where the meaning is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from webarcfs.dataset.narrowing import DatasetUnit


class Kind(StrEnum):
    """The kind of a column's values."""

    TEXT = "text"
    NUMBER = "number"
    YES_NO = "yes or no"
    TIME = "time"  # seconds since 1970 until it is written


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `elsewhere` is its name in the Archives Unleashed Toolkit, with what differs; empty: it has none."""

    name: str
    kind: Kind
    meaning: str
    elsewhere: str = ""


class Dataset(StrEnum):
    """What datasets are of."""

    PAGES = "pages"
    TEXT = "text"
    LINKS = "links"
    TYPES = "types"
    WORDS = "words"
    HOSTS = "hosts"


_TEXT, _NUMBER, _YES_NO, _TIME = Kind.TEXT, Kind.NUMBER, Kind.YES_NO, Kind.TIME

_WHEN = {
    DatasetUnit.VERSION: "when the first capture of the version was made",
    DatasetUnit.YEAR: "when the first capture of the version in the year was made",
    DatasetUnit.CAPTURE: "when the capture was made",
    DatasetUnit.SNAPSHOT: "when the last capture up to the snapshot was made",
}
_CRAWL_DATE = Column("crawl_date", _TEXT, "{when}: yyyymmddHHMMSS in UTC", "crawl_date")
_DOMAIN = Column("domain", _TEXT, "the host, with its port where that is not the usual one",
                 "domain; there the host without www.")  # fmt: skip
_URL = Column("url", _TEXT, "the URL, in canonical form", "url; there as the WARC record has it")
_MIME_TYPE = Column(
    "mime_type_web_server", _TEXT,
    "the MIME type, by the Content-Type of the response and the WHATWG MIME Sniffing Standard; else by the content",
    "mime_type_web_server; there the header alone",
)  # fmt: skip
_TITLE = Column("title", _TEXT, "the document's title, on one line; empty without one")
_STATUS = Column("http_status_code", _NUMBER, "the status code of the response", "http_status_code; there a text")
_SIZE = Column("size", _NUMBER, "bytes of the body; the toolkit's `bytes` are the body itself")
_SHA1 = Column("sha1", _TEXT, "the SHA-1 of the body, in hexadecimal; empty for a redirect", "sha1")
_ROLE = Column("role", _TEXT, "page; or resource: only pages of other hosts needed it")
_TARGET = Column("redirect_target", _TEXT, "where a redirect leads; empty for a document")
_PUBLICATION = Column("publication", _TEXT, "the publication whose crawl this is")
_SNAPSHOT = Column("snapshot", _TEXT, "the commitTag of that crawl's snapshot of the host; `webarc cat` takes it")
_CONTENT = Column("content", _TEXT, "the visible text, a line for each block",
                  "content; there with the HTTP headers removed, and line breaks folded")  # fmt: skip
_LANGUAGE = Column("language", _TEXT, "the language of the text as a code of two letters; empty: not known",
                   "language")  # fmt: skip
_FAULT = Column("text_fault", _TEXT, "why there is no text, or not all of it: no-text, encrypted, damaged, too-long, …")
_WORD = (
    "a word as the full-text index has it, without case and accents; of Chinese, Japanese and Korean text pairs of "
    "characters"
)
_YEARS = {
    DatasetUnit.VERSION: "the year (CET) of the first capture of the versions",
    DatasetUnit.YEAR: "the year (CET) in which the versions were captured",
    DatasetUnit.CAPTURE: "the year (CET) of the captures",
    DatasetUnit.SNAPSHOT: "the year (CET) of the snapshots",
}
_OF_UNIT = {
    DatasetUnit.VERSION: (
        Column("first", _TIME, "the time of the first capture of the version that is counted"),
        Column("last", _TIME, "the time of the last one"),
        Column("captures", _NUMBER, "the number of captures that have this version"),
    ),
    DatasetUnit.YEAR: (
        Column("first", _TIME, "the time of the first capture of the version in the year"),
        Column("last", _TIME, "the time of the last one in the year"),
        Column("captures", _NUMBER, "the number of captures in the year that have this version"),
    ),
    DatasetUnit.CAPTURE: (
        Column("revisit", _YES_NO, "whether the crawl met unchanged what an earlier one had stored"),
    ),
    DatasetUnit.SNAPSHOT: (
        Column("carried", _YES_NO, "whether the snapshot has it from before, and its own crawl did not capture it"),
    ),
}  # fmt: skip
_OF_PAGE = (_CRAWL_DATE, _DOMAIN, _URL, _MIME_TYPE)
_COUNTED = {
    DatasetUnit.VERSION: "versions",
    DatasetUnit.YEAR: "versions that were captured in the year",
    DatasetUnit.CAPTURE: "captures",
    DatasetUnit.SNAPSHOT: "snapshots with such a document, summed up",
}


def columns_of(dataset: Dataset, unit: DatasetUnit, *, by_host: bool = False) -> tuple[Column, ...]:
    """Return the columns of a dataset. `by_host` is of words."""
    more, year = _OF_UNIT[unit], Column("year", _NUMBER, _YEARS[unit])
    pages = Column("pages", _NUMBER, f"the number of {_COUNTED[unit]}")
    tables = {
        Dataset.PAGES: (
            *_OF_PAGE, _TITLE, _STATUS, _SIZE, _SHA1, _ROLE, _TARGET, _PUBLICATION, _SNAPSHOT, *more,
        ),
        Dataset.TEXT: (*_OF_PAGE, _LANGUAGE, _CONTENT, _TITLE, _SHA1, _FAULT, _SNAPSHOT, *more),
        Dataset.LINKS: (
            _CRAWL_DATE,
            Column("src", _TEXT, "the URL of the page", "src"),
            Column("dest", _TEXT, "where the link leads: a URL, or mailto: and an address", "dest; there URLs only"),
            Column("anchor", _TEXT, "the text of the link; of an image its alternative text",
                   "anchor; of images alt_text"),
            Column("kind", _TEXT, "http (followed, or shown in a frame), mail or image"),
            Column("times", _NUMBER, "how often the page has this link"),
            _DOMAIN,
            Column("dest_domain", _TEXT, "the host that it leads to; empty for a mail address"),
            _SNAPSHOT, *more,
        ),
        Dataset.TYPES: (
            year, _DOMAIN, _MIME_TYPE,
            Column("extension", _TEXT, "the extension of the URL's file, in lower case; empty without one",
                   "extension; there by the MIME type"),
            pages, replace(_SIZE, meaning="bytes of their bodies, together"),
        ),
        Dataset.WORDS: (
            year, *((_DOMAIN,) if by_host else ()),
            Column("word", _TEXT, _WORD),
            Column("count", _NUMBER, "how often it occurs"), pages,
        ),
        Dataset.HOSTS: (
            year,
            Column("src_domain", _TEXT, "the host of the pages"),
            Column("dest_domain", _TEXT, "the host that they link to"),
            Column("links", _NUMBER, "the number of links"), pages,
        ),
    }  # fmt: skip
    return tuple(
        replace(column, meaning=column.meaning.format(when=_WHEN[unit])) if column is _CRAWL_DATE else column
        for column in tables[dataset]
    )


#: The table of hosts that is beside each dataset.
OVERVIEW = (
    _DOMAIN,
    Column("snapshots", _NUMBER, "the snapshots of the host that were asked for"),
    Column("complete", _NUMBER, "those whose crawls fetched all that was in scope"),
    Column("incomplete", _NUMBER, "those whose crawls did not: what is missing there may have existed"),
    Column("first", _TEXT, "the time of the first of these snapshots; empty where all that is shown is under embargo"),
    Column("last", _TEXT, "the time of the last one"),
    Column("units", _NUMBER, "the rows of the unit that the dataset is of: versions, versions by year, captures, …"),
)
