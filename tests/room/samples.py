"""Sample values of every page of the room: rich ones, as a large archive has them, and the emptiest possible."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from types import SimpleNamespace
from typing import Any

from webarcfs.access.access_rules import Blocked
from webarcfs.archive.model.metadata import CET
from webarcfs.room.pages.citing import FORMS, Citation
from webarcfs.room.pages.searching import _SPANS, _SPANS_OF_CONDITIONS
from webarcfs.room.views import (
    CalendarEntry,
    Change,
    CollectionCard,
    Compared,
    DiffLine,
    ExternalLinkRow,
    FieldGroup,
    Line,
    Marked,
    Notice,
    PageLink,
    Pages,
    Slice,
    SnapshotRow,
)
from webarcfs.search.curves import CurvePoint, Curves, Period, PeriodLength, periods

#: A template, and its values.
Sample = tuple[str, dict[str, Any]]

START = datetime(2005, 8, 2, 3, 0, tzinfo=CET)
REPLAY = "http://replay.test"
_PAGE = "http://www.bundestag.example/parlament/gremien/ausschuesse/wirtschaft/protokolle/2005/sitzung_42.html?druck=1"
_SAVE = PageLink("https://desk.example/save?url=http%3A%2F%2Fwww.bundestag.example%2Fa%3Fb%3D1", "https://desk.example")


def page(template: str, /, **values: Any) -> Sample:
    """A page of a template with these values."""
    return template, values


def with_values(sample: Sample, **values: Any) -> Sample:
    """The same page, with some other values."""
    return page(sample[0], **{**sample[1], **values})


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
        project=("Internet", "Intranet")[number % 5 == 0],
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


_CARDS = (
    CollectionCard(
        href="/collection/elections", title="Bundestagswahlen und ihre Kampagnen im Netz", count=1_240, first=START,
        last=_year(60), picture="/collection/elections/picture", picture_text="Eine Wahlurne vor dem Reichstag",
        lead="Seiten der Parteien, der Kandidaten und des Bundeswahlleiters, vor und nach jeder Wahl geholt. " * 2,
    ),
    CollectionCard(
        href="/collection/floods", title="Flut", lead="Kreise und Gemeinden an Elbe und Mulde.", count=3, first=START,
        last=_year(2),
    ),
    CollectionCard(href="/collection/c", title="C", lead="", count=1, first=START, last=START),
)  # fmt: skip
_IN_COLLECTIONS = (PageLink("/collection/elections", _CARDS[0].title), PageLink("/collection/floods", "Flut"))
_SNIPPET = (
    "… in der Sitzung des Ausschusses für Wirtschaft wurde der Bericht der Bundesregierung beraten; "
    "der Bericht liegt als Drucksache vor …"
)


def _hit(number: int) -> SimpleNamespace:
    return SimpleNamespace(
        href=f"/web/200508{number:02}020000/{_PAGE}",
        calendar=f"/web/*/{_PAGE}",
        title=("Protokoll der 42. Sitzung", "", "Minutes of the committee on economic affairs")[number % 3],
        url=_PAGE,
        mime_type=("text/html", "application/pdf")[number % 2],
        language=("de", "", "en")[number % 3],
        size=48_123 * number,
        date=_year(number),
        span=(_SPANS_OF_CONDITIONS if number == 6 else _SPANS)[number % 3],
        words_from=_year(number),
        words_to=_year(number + number % 4),
        versions=number % 3 + 1,
        of_versions=number % 5 + 3,
        since=(None, Change.CHANGED, Change.GONE)[number % 3],
        snippet=Marked(_SNIPPET, tuple((at, at + 7) for at in (_SNIPPET.find("Bericht"), _SNIPPET.rfind("Bericht")))),
        signature="5100",
        project="Internet",
        domain="www.bundestag.example",
        record=PageLink("/snapshot/a", "Internetangebot des Deutschen Bundestages"),
    )


_FACETS = (
    ("during", "Captured in", ((PageLink("?during=2005", "2005"), 800), (PageLink("?during=2006", "2006"), 900))),
    ("type", "Kind of file", ((PageLink("?type=html", "html"), 1_204), (PageLink("?type=pdf", "pdf", True), 311))),
    (
        "site",
        "Site",
        ((PageLink("?site=a", "www.bundestag.example"), 1_411), (PageLink("?site=b", "dip.example"), 104)),
    ),
    ("language", "Language", ((PageLink("?language=de", "de"), 1_400), (PageLink("?language=en", "en"), 115))),
    ("publication", "Publication", ((PageLink("?publication=bundestag", "bundestag"), 1_515),)),
    ("role", "Pages and resources", ((PageLink("", "page"), 1_515),)),
)
_SEARCHED = page(
    "search.html",
    words="bericht ausschuss",
    fields={
        "site": "www.bundestag.example",
        "type": "pdf",
        "sort": "date",
        "after": "2005",
        "before": "2008",
        "during": "2005..2008",
        "language": "de",
        "publication": "bundestag",
        "record": "a",
        "role": "any",
    },
    has_index=True,
    total=1_515,
    shares=(
        PageLink("/search?q=bericht&present=1", "311 at present"),
        PageLink("/search?q=bericht&past=1", "1,204 only in earlier versions"),
    ),
    is_exact=False,
    is_of_the_past=False,
    curve=PageLink("/curve?q=bericht+ausschuss&type=pdf", ""),
    either=PageLink("/search?q=bericht+OR+ausschuss", ""),
    address=PageLink("/web/*/http://www.bundestag.example/", "http://www.bundestag.example/"),
    only_record=(row(), PageLink("/search?q=bericht", "")),
    languages=(("de", "German"), ("en", "English"), ("tlh", "tlh")),
    kinds=("html", "other", "pdf"),
    table_rows=1_000,
    as_it_was=None,
    states=(
        PageLink("/search?q=bericht", "all versions", True),
        PageLink("/search?q=bericht&present=1", "at present"),
        PageLink("/search?q=bericht&past=1", "only in earlier versions"),
    ),
    hits=tuple(_hit(number) for number in range(1, 8)),
    facets=_FACETS,
    pages=Pages(21, 40, 1_515, "/search?q=bericht", "/search?q=bericht&page=3"),
    suggestion=PageLink("/search?q=berichte+ausschuss", "berichte ausschuss"),
    from_record=(row(), PageLink("/search?q=bericht&record=a", "")),
    sorts=(
        PageLink("?sort=", "by relevance"),
        PageLink("?sort=date", "newest first", True),
        PageLink("?sort=url", "by URL"),
    ),
    groupings=(PageLink("?q=", "by URL", True), PageLink("?group=snapshot", "by snapshot")),
    exports=(PageLink("/search.csv?q=bericht", "CSV"), PageLink("/search.json?q=bericht", "JSON")),
    missing=2,
    publications=SimpleNamespace(names=("bundestag", "mitmischen"), is_choice=True),
    groups=(),
    fault="",
)
_GROUPED = with_values(
    _SEARCHED,
    hits=(),
    facets=(),
    groups=tuple(
        SimpleNamespace(
            anchor=f"s-{number}", title="Internetangebot des Deutschen Bundestages", date=_year(number),
            domain="www.bundestag.example", total=number * 100, hits=(_hit(number), _hit(number + 1)),
            more="/search?q=bericht&at=x",
        )
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
        digits="" if change in (Change.GONE, Change.WITHHELD) else f"2005{number:04}020000",
    )
    return replace(found, **others)


_ENTRIES = (
    _entry(0, Change.NEW),
    _entry(1, Change.SAME),
    _entry(30, Change.CHANGED),
    _entry(30, Change.SAME, date=START + timedelta(days=30, hours=6)),
    _entry(61, Change.CHANGED, status=301, target="http://www.bundestag.example/neu/sitzung_42.html", mime_type=""),
    _entry(92, Change.GONE),
    _entry(150, Change.WITHHELD, href="", status=0, mime_type=""),
    _entry(200, Change.NEW),
    _entry(260, Change.SAME),
    _entry(400, Change.CHANGED, status=404),
    _entry(930, Change.SAME),
)
_YEARS = tuple(
    (PageLink(f"/web/{year}*/{_PAGE}", str(year), year == 2005), count)
    for year, count in ((2005, 6), (2006, 3), (2008, 1))
)
_CALENDAR = page(
    "calendar.html",
    most_is_same=True,
    save=_SAVE,
    url=_PAGE,
    entries=_ENTRIES,
    rows=_ENTRIES[::-1],
    pages=Pages(101, 200, 100_000, f"/versions?url={_PAGE}", f"/versions?url={_PAGE}&page=3"),
    choices=(
        (PageLink(f"/web/*/{_PAGE}", "all snapshots", True), 100_000),
        (PageLink(f"/versions?url={_PAGE}&changes=1", "changes only"), 41),
    ),
    blocked=None,
    closed_until=None,
    counts_by_year=tuple((replace(link, is_here=False), count) for link, count in _YEARS),
    year=None,
    versions=6,
    timemaps=tuple(PageLink(f"/timemap/{kind}/{_PAGE}", kind) for kind in ("link", "json", "cdxj")),
    others=(PageLink("/web/*/http://bundestag.example/", "http://bundestag.example/"),),
    prefix="/web/*/http://www.bundestag.example/parlament/*",
)
_DIFF = page(
    "diff.html",
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
_CITATION = Citation(
    "Protokoll der 42. Sitzung", _PAGE, START - timedelta(days=3), f"/web/20050730020000/{_PAGE}",
    f"http://room.test/web/20050730020000/{_PAGE}",
)  # fmt: skip
_UNTITLED = Citation(
    "", "http://e.org/", START, "/web/20050802020000/http://e.org/", "http://room.test/web/20050802020000/http://e.org/"
)
_CITE = page(
    "cite.html",
    in_snapshot=f"http://room.example/web/20050802020000/{_PAGE}",
    citation=_CITATION,
    note=f"Archived copy of {_PAGE}, captured on 30 Jul 2005, 03:00 CET.",
    files=tuple(PageLink(f"/cite.{form}/20050730020000/{_PAGE}", form) for form in FORMS),
)
_FRAME = page(
    "frame.html",
    url=_PAGE,
    title="Protokoll der 42. Sitzung",
    source=f"{REPLAY}/web/20050802020000mp_/{_PAGE}",
    sandbox="allow-forms allow-downloads allow-top-navigation-by-user-activation",
    date=START,
    captured=START - timedelta(days=3),
    unchanged_since=None,
    citation=_CITATION,
    cite=f"/cite/20050802020000/{_PAGE}",
    whole=f"{REPLAY}/web/20050802020000mp_/{_PAGE}",
    furthest=9,
    previous=PageLink(f"/web/20050701020000/{_PAGE}", "2005-07-01T03:00:00+01:00"),
    following=PageLink(f"/web/20050902020000/{_PAGE}", "2005-09-02T03:00:00+01:00"),
    first=PageLink(f"/web/20050101020000/{_PAGE}", "2005-01-01T03:00:00+01:00"),
    last=PageLink(f"/web/20080902020000/{_PAGE}", "2008-09-02T03:00:00+01:00"),
    calendar=f"/web/*/{_PAGE}",
    differences=f"/diff/1..2/{_PAGE}",
    until_newest=f"/diff/2..9/{_PAGE}",
    raw=f"{REPLAY}/web/20050802020000id_/{_PAGE}",
    search="/search?from=a",
    record=row(),
    record_href="/snapshot/200508012-bundestag",
    goes_on=PageLink(f"/web/20050802020000/{_PAGE}/on", f"{_PAGE}/on"),
    alone=f"{REPLAY}/web/20050802020000mp_/{_PAGE}",
    has_scripts=True,
    runs_scripts=False,
    is_unreleased=True,
    copy="SingleFile",
    certificate=("expired", "host"),
    rendered=f"/web/20050802020000rf_/{_PAGE}",
    as_sent="",
    is_carried_over=False,
    reason_against="",
    size=0,
    message_script=False,
)
_MISSING = page(
    "missing.html",
    url=_PAGE,
    date=START,
    gone=PageLink("/snapshot/20050801-bundestag", "1 Aug 2005, 03:00 CET"),
    is_last=False,
    is_first=False,
    before=PageLink(f"/web/1/{_PAGE}", "2 Jul 2005, 03:00 CET"),
    after=PageLink(f"/web/2/{_PAGE}", "2 Sept 2005, 03:00 CET"),
    variants=(PageLink("/web/*/http://bundestag.example/", "http://bundestag.example/"),),
    calendar=f"/web/*/{_PAGE}",
    start="/web/20050802020000/http://www.bundestag.example/",
    host="www.bundestag.example",
    is_loop=False,
    is_known=True,
    has_host=True,
    prefixes=(
        PageLink("/web/*/http://www.bundestag.example/a/*", "http://www.bundestag.example/a/"),
        PageLink("/web/*/http://www.bundestag.example/*", "http://www.bundestag.example/"),
    ),
    search="/search?q=site:bundestag.example",
    record=row(),
    save=_SAVE,
)
_PUBLICATIONS = tuple(
    SimpleNamespace(
        href=f"/publication/{name}", name=name, description=description, count=count, first=_year(1),
        newest=row(14), next_to_newest=row(13) if count > 1 else None,
    )
    for name, description, count in (
        ("bundestag", "Das Internetangebot des Deutschen Bundestages mit den Protokollen und Drucksachen.", 1_201),
        ("mitmischen", "Das Jugendportal.", 24),
        ("wahl", "", 1),
    )
)  # fmt: skip
_HOME = page(
    "home.html",
    query="",
    fonds=(("5100", _PUBLICATIONS), ("5101 (Fraktionen)", _PUBLICATIONS[1:2])),
    rows=(),
    pages=None,
    filters=(
        ("signature", "Call number", "", (PageLink("/?signature=5100", "5100"), PageLink("/?signature=5101", "5101"))),
        ("type", "Type", "occasion", (PageLink("/", "occasion", True), PageLink("/?type=regular", "regular"))),
        ("year", "Year", "", tuple(PageLink(f"/?year={year}", str(year)) for year in range(2024, 2004, -1))),
    ),
    order=(),
    total_snapshots=1_240,
    collections=_CARDS,
    total_collections=12,
)

_FORM = with_values(
    _SEARCHED, words="", fields={}, total=0, hits=(), facets=(), pages=None, suggestion=None, from_record=None,
    only_record=None, address=None, curve=None, either=None, shares=(), is_exact=True, states=(), sorts=(),
    groupings=(), exports=(),
    missing=0, publications=SimpleNamespace(names=(), is_choice=True),
)  # fmt: skip
_BARE_HOME = page(
    "home.html", query="", fonds=(), rows=(), pages=None, filters=(), order=(), total_snapshots=0, collections=(),
    total_collections=0,
)  # fmt: skip
_BARE_CALENDAR = page(
    "calendar.html", url="http://e.org/", entries=(), counts_by_year=(), year=None, versions=0, timemaps=(), others=(),
    most_is_same=False, prefix="", rows=(), pages=None, choices=(), blocked=None, closed_until=None, save=None,
)  # fmt: skip
_BARE_RECORD = page(
    "record.html", row=bare_row(), is_closed=False, groups=(), starts=(), domains=(), types=(), extensions=(),
    before=None, changes=(), compare="", links="", neighbours=(), exports=(), resources=(0, 0), collections=(),
)  # fmt: skip


def notice(kind: Notice, text: str = "") -> Sample:
    """A notice of which there is nothing to say, or the archive's own words."""
    return page(
        "notice.html", kind=kind, url="", back="", text=text, reason="", until=None, record=None, groups=(), save=None
    )  # fmt: skip


def _domain(name: str, documents: int, size: int, *, is_resource: bool = False) -> SimpleNamespace:
    start = f"/web/1/http://{name}/"
    return SimpleNamespace(domain=name, start=start, documents=documents, bytes=size, is_resource=is_resource)


def _curves(words: tuple[str, ...], by: PeriodLength, number: int) -> Curves:
    """Curves of some words, with periods of few versions and one of none."""
    first = Period(2005, 8 if by is PeriodLength.MONTH else 0)
    last = Period(first.year + number - 1) if by is PeriodLength.YEAR else Period(first.year + 3, 11)
    points = []
    for at, period in enumerate(periods(first, last)):
        captured = 0 if at == 3 else 7 if at in (0, 5) else 1_200 + 311 * at
        versions = tuple(captured * (1 + (at * (2 * n + 3)) % 7) // (9 + 5 * n) for n in range(len(words)))
        points.append(CurvePoint(period, captured, versions))
    return Curves(words, by, tuple(points), missing=2)


_CURVE_WORDS = ("Bericht", '"annual report" OR minutes', "تقرير", "報告書", "Ausschuss " * 9)
_DRAWN = _curves(_CURVE_WORDS, PeriodLength.YEAR, 19)
_CURVE = page(
    "curve.html", words=_CURVE_WORDS, inputs=(*_CURVE_WORDS, "", ""), has_index=True, fault="",
    fields={"from": "2005", "to": "2023"}, curves=_DRAWN,
    rows=tuple(
        SimpleNamespace(
            period=str(point.period), captured=point.captured, is_few=point.is_few,
            cells=tuple(
                SimpleNamespace(words=words, share=point.share(at), versions=point.versions[at], href="/search?q=a")
                for at, words in enumerate(_CURVE_WORDS)
            ),
        )
        for point in _DRAWN.points
    ),
    exports=(PageLink("/curve.csv?q=Bericht", "CSV"), PageLink("/curve.svg?q=Bericht", "SVG")),
    steps=(PageLink("?by=year", "by year", True), PageLink("?by=month", "by month")),
)  # fmt: skip
_NO_CURVE = with_values(_CURVE, words=(), inputs=("", ""), fields={}, curves=None, rows=(), exports=(), steps=())


RICH: dict[str, Sample] = {
    "home": _HOME,
    "list": with_values(
        _HOME, fonds=(), query="wahl", rows=(_CLOSED, *_ROWS), pages=_WAY,
        order=(PageLink("/?all=1", "newest first", True), PageLink("/?all=1&order=oldest", "oldest first")),
    ),
    "publication": page(
        "publication.html", name="bundestag", description="Das Internetangebot des Deutschen Bundestages.", rows=_ROWS,
        pages=_WAY,
        counts_by_year=((2005, 2), (2006, 4), (2007, 0), (2008, 9), (2009, 12)),
        compare=tuple(SimpleNamespace(href=f"/compare/{at}..b", date=_year(at)) for at in (14, 13)),
        search="/search?publication=bundestag", collections=_IN_COLLECTIONS,
    ),
    "record": page(
        "record.html", row=row(), is_closed=False, groups=_GROUPS,
        starts=(PageLink(f"/web/1/{_PAGE}", _PAGE), PageLink("/web/1/http://dip.example/", "http://dip.example/")),
        domains=(*(_domain(name, 24_000, 991_000_000) for name in row().domains),
                 _domain("fonts.example", 3, 91_000, is_resource=True)),
        resources=(3, 91_000),
        types=_TYPES, extensions=_EXTENSIONS, before=row(11), changes=_COMPARED, compare="/compare/a..b",
        links="/snapshot/a/links", neighbours=(PageLink("/snapshot/b", "earlier"), PageLink("/snapshot/c", "later")),
        exports=tuple(PageLink(f"/snapshot/a.{kind}", kind.upper()) for kind in ("xml", "json", "dc")),
        collections=_IN_COLLECTIONS,
    ),
    "collections": page("collections.html", cards=_CARDS, pages=_WAY),
    "collection": page(
        "collection.html", card=_CARDS[0], text=f"{_CARDS[0].lead}\n\n{_CARDS[1].lead}", rows=(_CLOSED, *_ROWS),
        publications=tuple(PageLink(f"/publication/{name}", name) for name in ("bundestag", "bundesrat", "dip")),
        more_publications=4, pages=_WAY, search="/search?collection=elections",
    ),
    "closed record": with_values(
        _BARE_RECORD, row=_CLOSED, is_closed=True, groups=_GROUPS, neighbours=(PageLink("/snapshot/b", "earlier"),)
    ),
    "compare": page(
        "compare.html", a=row(11), b=row(12), types=_COMPARED, extensions=_COMPARED[:2],
        documents=tuple(PageLink(f"/diff/1..2/{_PAGE}", f"{what} {_PAGE}") for what in ("added", "removed", "changed")),
        counts=(("added", 1_204), ("removed", 3), ("changed", 41)),
        figures=(("bytes after the download", "3,212,345,678", "3,303,345,678"), ("number of files", "48211", "")),
        pages=_WAY, other=PageLink("/compare/a..b?role=any", "with what only pages of other hosts needed"),
    ),
    "links": page(
        "links.html", row=row(), links=tuple(
            ExternalLinkRow(number, ("Bundesrat", "zum Bundesrat"), f"http://www.bundesrat.example/{'a' * 90}/{number}",
                            ("_blank",), (PageLink(f"/web/1/{_PAGE}", _PAGE),), 17)
            for number in range(1, 5)
        ),
        pages=_WAY, csv="/snapshot/a/links.csv",
    ),
    "search": _SEARCHED,
    "grouped search": _GROUPED,
    "search of many publications": with_values(
        _SEARCHED,
        publications=SimpleNamespace(names=tuple(f"site-{number}" for number in range(200)), is_choice=False),
        fields={"type": "image/png", "publication": "site-7", "present": "1"}, shares=(), only_record=None,
    ),
    "search of the past": with_values(_SEARCHED, is_of_the_past=True, shares=(), is_exact=True, total=26),
    "search with nothing at present": with_values(
        _SEARCHED, total=1, states=(),
        shares=(PageLink("", "none at present"), PageLink("", "1 only in earlier versions")),
    ),
    "faulty search": with_values(
        _FORM, words="bericht AND (ausschuss", fault="a bracket is open at 12:\nbericht AND (ausschuss\n            ^",
    ),
    "curve": _CURVE,
    "curve by month": with_values(
        _CURVE, curves=_curves(("Bericht",), PeriodLength.MONTH, 40), fields={"by": "month", "site": "dip.example"},
    ),
    "faulty curve": with_values(
        _NO_CURVE, words=("bericht (",), inputs=("bericht (", "", ""), fault="this ( is never closed\n  bericht (",
    ),
    "calendar": _CALENDAR,
    "calendar of a year": with_values(
        _CALENDAR, year=2005, counts_by_year=_YEARS, entries=_ENTRIES[:6], rows=_ENTRIES[5::-1]
    ),
    "prefix": page(
        "prefix.html", prefix="http://www.bundestag.example/parlament/", following="/urls?prefix=x&after=y",
        rows=tuple(SimpleNamespace(href=f"/web/*/{_PAGE}", url=_PAGE, mime_type="text/html", versions=9, first=START,
                    last=_year(3), is_present=number != 2) for number in range(5)),
    ),
    "diff": _DIFF,
    "diff in one column": with_values(_DIFF, is_side_by_side=False, other_view="?view=side"),
    "frame": _FRAME,
    "frame of what did not change": with_values(
        _FRAME, unchanged_since=START - timedelta(days=40), captured=START, furthest=0, copy="", certificate=()
    ),
    "citation": _CITE,
    "notice in a frame": page("inner_notice.html", heading="Not in this snapshot", url=_PAGE),
    "frame of a document of another type": with_values(_FRAME, reason_against="not-read", size=12),
    "frame of a download": with_values(_FRAME, reason_against="too-large", size=17_300_000),
    "frame of pywb": with_values(_FRAME, runs_scripts=True, message_script=True, is_unreleased=False, furthest=0),
    **{
        f"notice {kind.value}": with_values(
            notice(kind), url="http://www.bundesrat.example/?a=1&b=<2>", back=f"/web/1/{_PAGE}", record=row(),
            reason="Appraised as not worth keeping", until=datetime(2035, 1, 1, tzinfo=CET),
            groups=_GROUPS if kind is Notice.CLOSED else (), save=_SAVE if kind is Notice.EXTERNAL else None,
        )
        for kind in Notice
    },
    "missing": _MISSING,
    "never seen": with_values(_MISSING, is_known=False, gone=None, before=None, after=None, record=row(13)),
    "gone": with_values(_MISSING, is_last=True, after=None),
    "not there yet": with_values(_MISSING, gone=None, is_first=True, before=None),
    "redirect without end": with_values(_MISSING, is_loop=True, before=None, after=None),
    "error": page(
        "error.html", status=400, heading="This cannot be asked", text="There is no such page",
        details="a bracket is open at 12",
    ),
    "about": page(
        "about.html", engine="built-in", snapshots=1_240, publications=4, domains=31, first=START, last=_year(60),
        interfaces=(("TimeMap", "/timemap/link/<url>"), ("CDX", "/cdx?url=<url>"), ("OpenSearch", "/opensearch.xml")),
    ),
}  # fmt: skip

EMPTY: dict[str, Sample] = {
    "home": _BARE_HOME,
    "list": with_values(_BARE_HOME, query="nothing", pages=Pages(0, 0, 0), total_snapshots=1),
    "one publication": with_values(
        _HOME, filters=(), fonds=(("", (SimpleNamespace(href="/publication/p", name="p", description="", count=1,
                                         first=START, newest=bare_row(), next_to_newest=None),)),),
    ),
    "publication": page(
        "publication.html", name="p", description="", rows=(bare_row(),), pages=Pages(1, 1, 1), counts_by_year=(),
        compare=(), search="", collections=(),
    ),
    "collections": page("collections.html", cards=(), pages=Pages(0, 0, 0)),
    "collection": page(
        "collection.html", card=_CARDS[2], text="", rows=(bare_row(),), publications=(), more_publications=0,
        pages=Pages(1, 1, 1), search="",
    ),
    "record": _BARE_RECORD,
    "compare": page(
        "compare.html", a=bare_row(), b=bare_row(), types=(), extensions=(), documents=(), counts=(), figures=(),
        pages=None, other=None,
    ),
    "links": page("links.html", row=bare_row(), links=(), pages=Pages(0, 0, 0), csv=""),
    "search": _FORM,
    "search without a hit": with_values(
        _FORM, words="nothing", as_it_was=PageLink("/search?q=nothing&at=2020", "2020")
    ),
    "search without an index": with_values(_FORM, has_index=False),
    "curve": _NO_CURVE,
    "curve without an index": with_values(_NO_CURVE, has_index=False),
    "curve of nothing": with_values(
        _NO_CURVE, words=("a",), inputs=("a", "", ""), curves=Curves(("a",), PeriodLength.YEAR, ()), rows=()
    ),
    "calendar": _BARE_CALENDAR,
    "calendar of what is withheld": with_values(_BARE_CALENDAR, blocked=Blocked("By law.")),
    "calendar under embargo": with_values(_BARE_CALENDAR, closed_until=START),
    "calendar of one": with_values(
        _BARE_CALENDAR, entries=_ENTRIES[:1], rows=_ENTRIES[:1], counts_by_year=((_YEARS[0][0], 1),), versions=1
    ),
    "prefix": page("prefix.html", prefix="http://e.org/", rows=(), following=""),
    "diff of the same": with_values(_DIFF, lines=(), is_same=True, is_cut=False),
    "diff of no texts": with_values(_DIFF, lines=(), is_text=False, is_cut=False),
    "diff of the text alone": with_values(_DIFF, lines=(), is_cut=False),
    "frame as rendered": with_values(
        _FRAME, rendered="", as_sent=f"/web/20050802020000/{_PAGE}", has_scripts=False, goes_on=None
    ),
    "citation": with_values(_CITE, citation=_UNTITLED, note="Archived copy of http://e.org/.", files=()),
    "frame": with_values(
        _FRAME, url="http://e.org/", title="", source="/web/1mp_/http://e.org/", sandbox="", date=START, captured=START,
        unchanged_since=None, citation=_UNTITLED, cite="/cite/1/http://e.org/", whole="",
        furthest=None, previous=None, following=None, first=None, last=None, calendar="/web/*/http://e.org/",
        differences="", until_newest="", raw="/web/1id_/http://e.org/", search="", record=None, has_scripts=False,
        runs_scripts=False,
        record_href="", goes_on=None, alone="", is_unreleased=False, copy="", certificate=(), rendered="",
    ),
    **{f"notice {kind.value}": notice(kind) for kind in Notice},
    "notice in a frame": page("inner_notice.html", heading="Not in this snapshot", url=""),
    "missing": page(
        "missing.html", url="http://e.org/", date=None, gone=None, before=None, after=None, variants=(),
        is_last=False, is_first=False,
        calendar="/web/*/http://e.org/", prefixes=(), search="", record=None, start="", host="e.org", is_loop=False,
        is_known=False, has_host=False, save=None,
    ),
    "error": page("error.html", status=404, heading="There is no such page", text="", details=""),
    "about": page(
        "about.html", engine="built-in", snapshots=0, publications=0, domains=0, first=None, last=None, interfaces=()
    ),
}  # fmt: skip


def each_text(sample: Sample, change: Any) -> Sample:
    """The same page with every text in its values changed; what is no text stays."""
    return sample[0], _changed(sample[1], change)


def _changed(value: Any, change: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(each, change) for each in value)
    if isinstance(value, SimpleNamespace):
        return SimpleNamespace(**_changed(vars(value), change))
    if isinstance(value, dict):
        return {key: _changed(each, change) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _changed(getattr(value, each.name), change) for each in fields(value)})
    return value
