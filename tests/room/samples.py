"""Sample values of every page of the room: rich ones, as a large archive has them, and the emptiest possible."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

from webarcfs.archive.model.metadata import CET
from webarcfs.room.views import (
    AboutPage,
    CalendarEntry,
    CalendarPage,
    Change,
    Choice,
    Compared,
    ComparePage,
    DiffLine,
    DiffPage,
    ErrorPage,
    ExternalLinkRow,
    Facet,
    FieldGroup,
    Fonds,
    FramePage,
    FrameRecord,
    HitGroup,
    HitRow,
    HomePage,
    InnerNotice,
    Line,
    LinksPage,
    Marked,
    MissingPage,
    Notice,
    NoticePage,
    PageLink,
    Pages,
    PartRow,
    PrefixPage,
    PrefixRow,
    PublicationPage,
    PublicationRow,
    RecordPage,
    SearchPage,
    Slice,
    SnapshotRow,
)

_T = TypeVar("_T")

START = datetime(2005, 8, 2, 3, 0, tzinfo=CET)
REPLAY = "http://replay.test"
_PAGE = "http://www.bundestag.example/parlament/gremien/ausschuesse/wirtschaft/protokolle/2005/sitzung_42.html?druck=1"


def _year(number: int) -> datetime:
    return START + timedelta(days=91 * number)


def row(number: int = 12, **others: Any) -> SnapshotRow:
    """A snapshot of a well described archive."""
    found = SnapshotRow(
        href=f"/snapshot/2005080{number}-bundestag",
        start=f"/web/200508{number:02}020000/http://www.bundestag.example/",
        number=number,
        title="Internetangebot des Deutschen Bundestages",
        publication="bundestag",
        signature="5100",
        provenance="Referat PuK 4, Online-Dienste",
        project="Internet",
        domains=("www.bundestag.example", "dip.bundestag.example", "mitmischen.bundestag.example"),
        is_occasion=number % 3 == 0,
        reason="Constitution of the 16th electoral term" if number % 3 == 0 else "",
        date=_year(number),
        complete=number % 4 != 1,
        documents=48_211 + 900 * number,
        bytes=3_212_345_678 + 91_000_000 * number,
    )
    return replace(found, **others)


def bare_row() -> SnapshotRow:
    """A snapshot of which nobody said anything."""
    return SnapshotRow(
        href="/snapshot/a", start="", number=0, title="", publication="p", signature="", provenance="", project="",
        domains=("example.org",), is_occasion=False, reason="", date=START, complete=True, documents=None, bytes=None,
    )  # fmt: skip


_ROWS = tuple(row(number) for number in range(14, 2, -1))
_CLOSED = row(15, start="", closed_until=datetime(2035, 1, 1, tzinfo=CET))
_WAY = Pages(21, 40, 1_240, "/?all=1", "/?all=1&page=3")
_TYPES = (
    Slice("text/html", 31_207, 912_345_678),
    Slice("image/jpeg", 9_120, 701_222_333),
    Slice("application/pdf", 4_411, 1_402_333_111),
    Slice("image/gif", 2_302, 12_333_444),
    Slice("text/css", 310, 3_102_000),
    Slice("application/x-javascript", 120, 1_201_000),
    Slice("video/x-ms-wmv", 3, 120_201_000),
    *(Slice(f"application/x-rare-{number}", 2, 4_000) for number in range(9)),
)
_EXTENSIONS = (Slice("html", 30_102, 890_000_000), Slice("pdf", 4_411, 1_402_333_111), Slice("", 1_105, 22_000_000))
_COMPARED = (
    Compared("text/html", 30_002, 31_207, 900_000_000, 912_345_678),
    Compared("application/pdf", 4_411, 4_411, 1_402_333_111, 1_402_333_111),
    Compared("application/x-shockwave-flash", 12, 0, 4_000_000, 0),
    Compared("video/x-ms-wmv", 0, 3, 0, 120_201_000),
)
_GROUPS = (
    FieldGroup(
        "Crawl",
        (
            (2, "signature of the fonds", "5100"),
            (3, "provenance: the office in charge", "Referat PuK 4, Online-Dienste"),
            (6, "remarks", "Capture on the eve of the constitution of the Bundestag.\nSecond run after a fault."),
            (11, "download tool", "GNU Wget 1.21.3 built on linux-gnu"),
            (19, "command line of the crawler", "wget --warc-file=capture --no-verbose --tries=3 --timeout=30 " * 3),
        ),
    ),
    FieldGroup("Release", ((60, "date of the release", "2005-09-12T10:00:00"), (63, "other checks", "start page"))),
)


_SNIPPET = (
    "… in der Sitzung des Ausschusses für Wirtschaft wurde der Bericht der Bundesregierung beraten; "
    "der Bericht liegt als Drucksache vor …"
)


def _hit(number: int) -> HitRow:
    return HitRow(
        href=f"/web/200508{number:02}020000/{_PAGE}",
        calendar=f"/web/*/{_PAGE}",
        title=("Protokoll der 42. Sitzung", "", "Minutes of the committee on economic affairs")[number % 3],
        url=_PAGE,
        mime_type=("text/html", "application/pdf")[number % 2],
        language=("de", "", "en")[number % 3],
        size=48_123 * number,
        first=_year(number),
        last=_year(number + number % 2),
        snippet=Marked(_SNIPPET, tuple((at, at + 7) for at in (_SNIPPET.find("Bericht"), _SNIPPET.rfind("Bericht")))),
        signature="5100",
        project="Internet",
        domain="www.bundestag.example",
        record=PageLink("/snapshot/a", "Internetangebot des Deutschen Bundestages"),
    )  # fmt: skip


_FACETS = (
    Facet("type", "Kind of file", ((PageLink("?type=html", "html"), 1_204), (PageLink("?type=pdf", "pdf", True), 311))),
    Facet(
        "site",
        "Site",
        ((PageLink("?site=a", "www.bundestag.example"), 1_411), (PageLink("?site=b", "dip.example"), 104)),
    ),
    Facet("language", "Language", ((PageLink("?language=de", "de"), 1_400), (PageLink("?language=en", "en"), 115))),
    Facet("", "Year", ((PageLink("", "2005"), 800), (PageLink("", "2006"), 900))),
)
_SEARCHED = SearchPage(
    words="bericht ausschuss",
    fields={"site": "www.bundestag.example", "type": "pdf", "sort": "date", "after": "2005"},
    has_index=True,
    total=1_515,
    hits=tuple(_hit(number) for number in range(1, 8)),
    facets=_FACETS,
    pages=Pages(21, 40, 1_515, "/search?q=bericht", "/search?q=bericht&page=3"),
    suggestion=PageLink("/search?q=berichte+ausschuss", "berichte ausschuss"),
    from_record=row(),
    sorts=(
        PageLink("?sort=", "by relevance"),
        PageLink("?sort=date", "newest first", True),
        PageLink("?sort=url", "by URL"),
    ),
    groupings=(PageLink("?q=", "by URL", True), PageLink("?group=snapshot", "by snapshot")),
    exports=(PageLink("/search.csv?q=bericht", "CSV"), PageLink("/search.json?q=bericht", "JSON")),
    missing=2,
    publications=("bundestag", "mitmischen"),
    snapshots=(("a", "Internetangebot, 2 Aug 2005", True), ("b", "Internetangebot, 3 Sep 2005", False)),
)
_GROUPED = replace(
    _SEARCHED,
    hits=(),
    facets=(),
    groups=tuple(
        HitGroup(f"s-{number}", "Internetangebot des Deutschen Bundestages", _year(number), "www.bundestag.example",
                 number * 100, (_hit(number), _hit(number + 1)), "/search?q=bericht&at=x")
        for number in range(1, 4)
    ),
    groupings=(PageLink("?q=", "by URL"), PageLink("?group=snapshot", "by snapshot", True)),
    sorts=(),
)  # fmt: skip


def _entry(number: int, change: Change, **others: Any) -> CalendarEntry:
    found = CalendarEntry(
        href="" if change is Change.GONE else f"/web/2005{number:04}020000/{_PAGE}",
        date=START + timedelta(days=number),
        change=change,
        status=0 if change is Change.GONE else 200,
        size=31_022 + number,
        mime_type="" if change is Change.GONE else "text/html",
        diff=f"/diff/1..2/{_PAGE}" if change is Change.CHANGED else "",
    )
    return replace(found, **others)


_ENTRIES = (
    _entry(0, Change.NEW),
    _entry(1, Change.SAME),
    _entry(30, Change.CHANGED),
    _entry(30, Change.SAME, date=START + timedelta(days=30, hours=6)),
    _entry(61, Change.CHANGED, status=301, target="http://www.bundestag.example/neu/sitzung_42.html", mime_type=""),
    _entry(92, Change.GONE),
    _entry(200, Change.NEW),
    _entry(260, Change.SAME),
    _entry(400, Change.CHANGED, status=404),
    _entry(930, Change.SAME),
)
_YEARS = tuple(
    (PageLink(f"/web/{year}*/{_PAGE}", str(year), year == 2005), count)
    for year, count in ((2005, 6), (2006, 3), (2008, 1))
)
_CALENDAR = CalendarPage(
    url=_PAGE,
    entries=_ENTRIES,
    years=tuple((replace(link, is_here=False), count) for link, count in _YEARS),
    year=None,
    versions=6,
    timemaps=tuple(PageLink(f"/timemap/{kind}/{_PAGE}", kind) for kind in ("link", "json", "cdxj")),
    others=(PageLink("/web/*/http://bundestag.example/", "http://bundestag.example/"),),
    prefix="/web/*/http://www.bundestag.example/parlament/*",
)
_DIFF = DiffPage(
    url=_PAGE,
    old=_ENTRIES[0],
    new=_ENTRIES[2],
    lines=(
        DiffLine(Line.SKIPPED, None, None, 12),
        DiffLine(Line.SAME, Marked("Ausschuss für Wirtschaft"), Marked("Ausschuss für Wirtschaft")),
        DiffLine(
            Line.REMOVED,
            Marked("Vorsitzender: Dr. Rainer Wend, 42. Sitzung", ((14, 29),)),
            Marked("Vorsitzende: Edelgard Bulmahn, 42. Sitzung", ((13, 29),)),
        ),
        DiffLine(Line.REMOVED, Marked("Ort: Paul-Löbe-Haus", ((0, 19),)), None),
        DiffLine(Line.ADDED, None, Marked("Donaudampfschifffahrtsgesellschaft" * 4, ((0, 10),))),
        DiffLine(Line.SKIPPED, None, None, 1),
    ),
    is_side_by_side=True,
    other_view="?view=inline",
    is_text=True,
    is_same=False,
    is_cut=True,
    is_coarse=True,
    calendar=f"/web/*/{_PAGE}",
    old_frame=f"/web/1/{_PAGE}",
    new_frame=f"/web/2/{_PAGE}",
)
_FRAME = FramePage(
    url=_PAGE,
    title="Protokoll der 42. Sitzung",
    source=f"{REPLAY}/web/20050802020000mp_/{_PAGE}",
    sandbox="allow-forms allow-downloads allow-top-navigation-by-user-activation",
    date=START,
    captured=START - timedelta(days=3),
    is_unchanged=False,
    furthest=9,
    previous=PageLink(f"/web/20050701020000/{_PAGE}", "2005-07-01T03:00:00+01:00"),
    following=PageLink(f"/web/20050902020000/{_PAGE}", "2005-09-02T03:00:00+01:00"),
    first=PageLink(f"/web/20050101020000/{_PAGE}", "2005-01-01T03:00:00+01:00"),
    last=PageLink(f"/web/20080902020000/{_PAGE}", "2008-09-02T03:00:00+01:00"),
    calendar=f"/web/*/{_PAGE}",
    differences=f"/diff/1..2/{_PAGE}",
    raw=f"{REPLAY}/web/20050802020000id_/{_PAGE}",
    search="/search?from=a",
    record=FrameRecord(
        href="/snapshot/200508012-bundestag",
        signature="5100",
        project="Internet",
        date=row().date,
        is_occasion=True,
        complete=True,
    ),
    goes_on=PageLink(f"/web/20050802020000/{_PAGE}/on", f"{_PAGE}/on"),
    alone=f"{REPLAY}/web/20050802020000mp_/{_PAGE}",
    has_scripts=True,
    runs_scripts=False,
    is_unreleased=True,
    copy="SingleFile",
    certificate=("expired", "host"),
    rendered=f"/web/20050802020000rf_/{_PAGE}",
)
_MISSING = MissingPage(
    url=_PAGE,
    date=START,
    before=PageLink(f"/web/1/{_PAGE}", "2 Jul 2005, 03:00 CET"),
    after=PageLink(f"/web/2/{_PAGE}", "2 Sept 2005, 03:00 CET"),
    variants=(PageLink("/web/*/http://bundestag.example/", "http://bundestag.example/"),),
    calendar=f"/web/*/{_PAGE}",
    prefix="/web/*/http://www.bundestag.example/*",
    search="/search?q=site:bundestag.example",
    record=row(),
)
_PUBLICATIONS = tuple(
    PublicationRow(f"/publication/{name}", name, description, count, _year(1), row(14), row(13) if count > 1 else None)
    for name, description, count in (
        ("bundestag", "Das Internetangebot des Deutschen Bundestages mit den Protokollen und Drucksachen.", 1_201),
        ("mitmischen", "Das Jugendportal.", 24),
        ("wahl", "", 1),
    )
)
_HOME = HomePage(
    query="",
    fonds=(Fonds("5100", _PUBLICATIONS), Fonds("5101 (Fraktionen)", _PUBLICATIONS[1:2])),
    rows=(),
    pages=None,
    filters=(
        Choice("signature", "Signature", (PageLink("/?signature=5100", "5100"), PageLink("/?signature=5101", "5101"))),
        Choice("type", "Type", (PageLink("/", "occasion", True), PageLink("/?type=regular", "regular")), "occasion"),
        Choice("year", "Year", tuple(PageLink(f"/?year={year}", str(year)) for year in range(2024, 2004, -1))),
    ),
    order=(),
    has_search=True,
    total_snapshots=1_240,
)

RICH: dict[str, object] = {
    "home": _HOME,
    "list": replace(
        _HOME, fonds=(), query="wahl", rows=(_CLOSED, *_ROWS), pages=_WAY,
        order=(PageLink("/?all=1", "newest first", True), PageLink("/?all=1&order=oldest", "oldest first")),
    ),
    "publication": PublicationPage(
        name="bundestag", description="Das Internetangebot des Deutschen Bundestages.", rows=_ROWS, pages=_WAY,
        years=((2005, 2), (2006, 4), (2007, 0), (2008, 9), (2009, 12)),
        compare=(PageLink("/compare/a..b", ""), PageLink("/compare/b..c", "")), search="/search?publication=bundestag",
    ),
    "record": RecordPage(
        row=row(), is_closed=False, groups=_GROUPS,
        starts=(PageLink(f"/web/1/{_PAGE}", _PAGE), PageLink("/web/1/http://dip.example/", "http://dip.example/")),
        parts=(*(PartRow(name, f"/web/1/http://{name}/", 24_000, 991_000_000) for name in row().domains),
               PartRow("fonts.example", "/web/1/http://fonts.example/", 3, 91_000, is_resource=True)),
        resources=(3, 91_000),
        types=_TYPES, extensions=_EXTENSIONS, before=row(11), changes=_COMPARED, compare="/compare/a..b",
        links="/snapshot/a/links", neighbours=(PageLink("/snapshot/b", "earlier"), PageLink("/snapshot/c", "later")),
        exports=tuple(PageLink(f"/snapshot/a.{kind}", kind.upper()) for kind in ("xml", "json", "dc")),
    ),
    "closed record": RecordPage(
        _CLOSED, True, _GROUPS, (), (), (), (), None, (), "", "", (PageLink("/snapshot/b", "earlier"),), ()
    ),
    "compare": ComparePage(
        a=row(11), b=row(12), types=_COMPARED, extensions=_COMPARED[:2],
        documents=tuple(PageLink(f"/diff/1..2/{_PAGE}", f"{what} {_PAGE}") for what in ("added", "removed", "changed")),
        counts=(("added", 1_204), ("removed", 3), ("changed", 41)),
        figures=(("bytes after the download", "3,212,345,678", "3,303,345,678"), ("number of files", "48211", "")),
        pages=_WAY,
    ),
    "links": LinksPage(
        row(),
        tuple(
            ExternalLinkRow(number, ("Bundesrat", "zum Bundesrat"), f"http://www.bundesrat.example/{'a' * 90}/{number}",
                            ("_blank",), (PageLink(f"/web/1/{_PAGE}", _PAGE),), 17)
            for number in range(1, 5)
        ),
        _WAY, "/snapshot/a/links.csv",
    ),
    "search": _SEARCHED,
    "grouped search": _GROUPED,
    "faulty search": SearchPage(
        "bericht AND (ausschuss", {}, True, fault="a bracket is open at 12:\nbericht AND (ausschuss\n            ^",
    ),
    "calendar": _CALENDAR,
    "calendar of a year": replace(_CALENDAR, year=2005, years=_YEARS, entries=_ENTRIES[:6]),
    "prefix": PrefixPage(
        "http://www.bundestag.example/parlament/",
        tuple(PrefixRow(f"/web/*/{_PAGE}", _PAGE, "text/html", 9, START, _year(3), number != 2) for number in range(5)),
        "/urls?prefix=x&after=y",
    ),
    "diff": _DIFF,
    "diff in one column": replace(_DIFF, is_side_by_side=False, other_view="?view=side"),
    "frame": _FRAME,
    "notice in a frame": InnerNotice("Not in this snapshot", _PAGE),
    "frame of a document of another type": replace(_FRAME, reason_against="not-read", size=12),
    "frame of a download": replace(_FRAME, reason_against="too-large", size=17_300_000),
    "frame of pywb": replace(_FRAME, runs_scripts=True, message_script=True, is_unreleased=False, furthest=0),
    **{
        f"notice {kind.value}": NoticePage(
            kind, "http://www.bundesrat.example/?a=1&b=<2>", f"/web/1/{_PAGE}", reason="Appraised as not worth keeping",
            until=datetime(2035, 1, 1, tzinfo=CET), record=row(), groups=_GROUPS if kind is Notice.CLOSED else (),
        )
        for kind in Notice
    },
    "missing": _MISSING,
    "error": ErrorPage(400, "This cannot be asked", "There is no such page", "a bracket is open at 12"),
    "about": AboutPage(
        "0.1.0", "built-in", 1_240, 4, 31, START, _year(60),
        (("TimeMap", "/timemap/link/<url>"), ("CDX", "/cdx?url=<url>"), ("OpenSearch", "/opensearch.xml")),
    ),
}  # fmt: skip

_GONE = CalendarEntry("", START, Change.GONE, 0, 0, "")
EMPTY: dict[str, object] = {
    "home": HomePage("", (), (), None, (), (), False, 0),
    "list": HomePage("nothing", (), (), Pages(0, 0, 0), (), (), True, 1),
    "one publication": replace(
        _HOME, fonds=(Fonds("", (PublicationRow("/publication/p", "p", "", 1, START, bare_row(), None),)),), filters=()
    ),
    "publication": PublicationPage("p", "", (bare_row(),), Pages(1, 1, 1), (), (), ""),
    "record": RecordPage(bare_row(), False, (), (), (), (), (), None, (), "", "", (), ()),
    "compare": ComparePage(bare_row(), bare_row(), (), (), (), (), (), None),
    "links": LinksPage(bare_row(), (), Pages(0, 0, 0), ""),
    "search": SearchPage("", {}, True),
    "search without a hit": SearchPage("nothing", {}, True),
    "search without an index": SearchPage("", {}, False),
    "calendar": CalendarPage("http://e.org/", (), (), None, 0, (), (), ""),
    "calendar of one": CalendarPage("http://e.org/", _ENTRIES[:1], ((_YEARS[0][0], 1),), None, 1, (), (), ""),
    "prefix": PrefixPage("http://e.org/", (), ""),
    "diff of the same": replace(_DIFF, lines=(), is_same=True, is_cut=False),
    "diff of no texts": replace(_DIFF, lines=(), is_text=False, is_cut=False),
    "diff of the text alone": replace(_DIFF, lines=(), is_cut=False),
    "frame as rendered": replace(
        _FRAME, rendered="", as_sent=f"/web/20050802020000/{_PAGE}", has_scripts=False, goes_on=None
    ),
    "frame": FramePage(
        url="http://e.org/", title="", source="/web/1mp_/http://e.org/", sandbox="", date=START, captured=START,
        is_unchanged=False,
        furthest=None, previous=None, following=None, first=None, last=None, calendar="/web/*/http://e.org/",
        differences="", raw="/web/1id_/http://e.org/", search="", record=None, has_scripts=False, runs_scripts=False,
    ),
    **{f"notice {kind.value}": NoticePage(kind, "", "") for kind in Notice},
    "notice in a frame": InnerNotice("Not in this snapshot", ""),
    "missing": MissingPage("http://e.org/", None, None, None, (), "/web/*/http://e.org/", "", "", None),
    "error": ErrorPage(404, "There is no such page", ""),
    "about": AboutPage("", "built-in", 0, 0, 0, None, None),
}  # fmt: skip


def each_text(value: _T, change: Any) -> _T:
    """The same value with every text in it changed; what is no text stays."""
    return _changed(value, change)  # type: ignore[no-any-return] # it is of the same type


def _changed(value: Any, change: Any) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(each, change) for each in value)
    if isinstance(value, dict):
        return {key: _changed(each, change) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _changed(getattr(value, each.name), change) for each in fields(value)})
    return value
