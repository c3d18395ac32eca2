"""Words over time: the numbers are those of a scan of what was imported, for staff and for readers."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from xml.etree import ElementTree

import pytest
from selectolax.lexbor import LexborHTMLParser

from agent.indexing.fulltext import bring_in_step
from agent.operations.records import Acting, decide
from tests.support import warcs
from tests.support.archives import make_archive
from tests.support.dated_pages import response
from tests.support.imports import imported
from tests.support.readercommand import webarc
from tests.support.rooms import Served, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.workflow import Decision
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import BadCondition, TookTooLong, TooMany
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.system import clocks
from webarcfs.room.pages import curves as page
from webarcfs.search.curves import FEW, MOST_CURVES, MOST_PERIODS, Curves, Period, PeriodLength, count_curves
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = pytest.mark.crawl

HOSTS = ("www.example.org", "news.example.org")
#: A word in every script, and one that each page has.
WORDS = ("hafen", "harbour", "λιμάνι", "гавань", "ميناء", "נמל", "बंदरगाह", "ท่าเรือ", "港口", "항구", "նավահանգիստ")
STOP_WORD = "und"
#: In 2014 nothing was captured, in 2016 little.
YEARS = (2011, 2012, 2013, 2015, 2016, 2017, 2018)
LITTLE = 2016


@dataclass(frozen=True)
class Capture:
    """A response of a server: the truth, by which the archive is judged."""

    url: str
    time: datetime
    words: tuple[str, ...]


def _captures() -> list[Capture]:
    """Crawls of two hosts, two in most years: pages keep their words, change, go and come back."""
    dice = random.Random(41)
    found = []
    state: dict[str, tuple[str, ...]] = {}
    for year in YEARS:
        for month in (3, 10) if year != LITTLE else (6,):
            for host in HOSTS:
                for number in range(18 if year != LITTLE else 5):
                    url = f"http://{host}/p{number}.html"
                    if url not in state or dice.random() < 0.4:
                        state[url] = tuple(sorted(dice.sample(WORDS, dice.randrange(4))))
                    if dice.random() < 0.8:
                        time = datetime(year, month, 5, 4, number, tzinfo=UTC)
                        found.append(Capture(url, time, state[url]))
    for number in range(20):  # a crawl at the end of the last year, which begins an hour earlier here than in UTC
        url = f"http://{HOSTS[0]}/p{number}.html"
        time = datetime(2018, 12, 31, 22, 50, tzinfo=UTC) + timedelta(minutes=number)
        found.append(Capture(url, time, state.get(url, (WORDS[0],)) if number % 3 else (WORDS[1],)))
    return found


CAPTURES = _captures()


def _record(capture: Capture) -> bytes:
    text = " ".join((STOP_WORD, *capture.words))
    body = f'<html lang="x"><meta charset="utf-8"><title>page</title><p>{text}</p></html>'.encode()
    return response(capture.url, body, f"{capture.time:%Y-%m-%dT%H:%M:%SZ}", "text/html; charset=utf-8")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("curves")
    made = make_archive(folder)
    by_year: dict[int, list[bytes]] = {}
    for capture in CAPTURES:
        by_year.setdefault(capture.time.year, []).append(_record(capture))
    for year, records in by_year.items():
        imported(made, warcs.write(folder / f"{year}.warc.gz", records, "gzip"), name="town")
    _withhold_half(made)
    bring_in_step(made)
    return made


def _is_withdrawn(time: datetime) -> bool:
    return time.year in (2012, 2017) or (time.year, time.month) == (2015, 3)


def _is_excluded(url: str) -> bool:
    return url.startswith(f"http://{HOSTS[1]}/p1")


def _withhold_half(archive: Archive) -> None:
    for record in list(Catalogue(archive).records()):
        assert record.date is not None
        if _is_withdrawn(record.date):
            decide(archive, record.id, Decision.WITHDRAW, Acting("anna", None), "why")
    access_rules.withhold(archive, f"http://{HOSTS[1]}/p1*", "anna", "why", access=Access.EXCLUDE)


def _period(time: datetime, by: PeriodLength) -> str:
    return f"{time.astimezone(CET):{'%Y' if by is PeriodLength.YEAR else '%Y-%m'}}"


def _crawls(host: str) -> Iterator[list[Capture]]:
    """The captures of a host, crawl by crawl: each is in a month of its own."""
    own = sorted((each for each in CAPTURES if each.url.split("/")[2] == host), key=lambda each: each.time)
    yield from (list(crawl) for _, crawl in groupby(own, key=lambda each: (each.time.year, each.time.month)))


def _scan(
    words: Sequence[str],
    *,
    to_readers: bool = False,
    by: PeriodLength = PeriodLength.YEAR,
    hosts: Iterable[str] = HOSTS,
) -> dict[str, tuple[int, ...]]:
    """Of each period the distinct versions that were captured in it, and those that have each word.

    To readers, a version that a hidden crawl stored was captured first when the first visible crawl began which has it,
    as CDX says it.
    """
    versions: dict[str, dict[tuple[str, int], tuple[str, ...]]] = {}
    for host in hosts:
        runs: dict[str, list[tuple[str, ...]]] = {}
        seen: set[tuple[str, int]] = set()
        for crawl in _crawls(host):
            is_hidden = to_readers and _is_withdrawn(crawl[0].time)
            captured = []
            for capture in crawl:
                known = runs.setdefault(capture.url, [])
                if not known or known[-1] != capture.words:
                    known.append(capture.words)
                captured.append((_period(capture.time, by), capture.url))
            if is_hidden:
                continue
            carried = [url for url, known in runs.items() if (url, len(known)) not in seen]
            captured += [
                (_period(crawl[0].time, by), url) for url in carried if url not in {each[1] for each in captured}
            ]
            for period, url in captured:
                seen.add((url, len(runs[url])))
                if not (to_readers and _is_excluded(url)):
                    versions.setdefault(period, {})[url, len(runs[url])] = runs[url][-1]
    return {
        period: (len(found), *(sum(word in (*text, STOP_WORD) for text in found.values()) for word in words))
        for period, found in versions.items()
    }


def _as_numbers(curves: Curves) -> dict[str, tuple[int, ...]]:
    return {str(point.period): (point.captured, *point.versions) for point in curves.points if point.captured}


def _searcher(archive: Archive, *, to_readers: bool) -> Searcher:
    return Searcher(archive, Gate(archive, Reader()) if to_readers else None)


_ALL = SearchQuestion(words="")


@pytest.mark.parametrize("to_readers", [False, True])
@pytest.mark.parametrize("by", PeriodLength)
@pytest.mark.parametrize("words", [WORDS[:6], WORDS[6:], (STOP_WORD, "unknownword")])
def test_curves_are_those_of_a_scan(
    archive: Archive, words: tuple[str, ...], by: PeriodLength, to_readers: bool
) -> None:
    curves = count_curves(_searcher(archive, to_readers=to_readers), words, _ALL, by)
    assert _as_numbers(curves) == _scan(words, to_readers=to_readers, by=by)
    assert curves.missing == 0
    assert any(any(point.versions) for point in curves.points)


def test_what_is_withheld_is_half_and_some_words_are_only_there() -> None:
    """The test of the tests: readers see less, and not nothing."""
    all_of_it, readers = (_scan(WORDS, to_readers=to_readers) for to_readers in (False, True))
    assert readers.keys() < all_of_it.keys() and sum(map(sum, readers.values())) < 0.7 * sum(
        map(sum, all_of_it.values())
    )


@pytest.mark.parametrize("to_readers", [False, True])
def test_a_host_alone_has_curves_of_its_own(archive: Archive, to_readers: bool) -> None:
    question = SearchQuestion(words="", domain=HOSTS[0])
    curves = count_curves(_searcher(archive, to_readers=to_readers), WORDS[:2], question)
    assert _as_numbers(curves) == _scan(WORDS[:2], to_readers=to_readers, hosts=HOSTS[:1])


def test_years_without_a_capture_and_with_few_are_there_and_say_so(archive: Archive) -> None:
    curves = count_curves(_searcher(archive, to_readers=False), [STOP_WORD, "unknownword"], _ALL)
    assert [str(point.period) for point in curves.points] == [str(year) for year in range(2011, 2020)]
    by_year = {point.period.year: point for point in curves.points}
    assert by_year[2014].captured == 0 and by_year[2014].share(0) is None and by_year[2014].is_few
    assert 0 < by_year[LITTLE].captured < FEW and by_year[LITTLE].is_few
    assert by_year[2011].captured >= FEW and not by_year[2011].is_few
    assert {point.share(0) for point in curves.points} == {1.0, None}
    assert {point.share(1) for point in curves.points} == {0.0, None}


def test_the_first_and_last_year_of_readers_are_of_what_they_see(archive: Archive) -> None:
    curves = count_curves(_searcher(archive, to_readers=True), [STOP_WORD], SearchQuestion(words=""))
    assert curves.points[0].captured and curves.points[-1].captured
    hidden = {point.period.year for point in curves.points if not point.captured}
    assert hidden == {2012, 2014, 2017}


def test_limits_of_time_are_those_that_are_asked_for(archive: Archive) -> None:
    searcher = _searcher(archive, to_readers=False)
    curves = count_curves(searcher, [STOP_WORD], _ALL, PeriodLength.MONTH, (Period(2012, 9), Period(2013)))
    assert (str(curves.points[0].period), str(curves.points[-1].period), len(curves.points)) == (
        "2012-09",
        "2013-12",
        16,
    )
    assert [str(point.period) for point in curves.points if point.captured] == ["2012-10", "2013-03", "2013-10"]
    early = count_curves(searcher, [STOP_WORD], _ALL, between=(Period(1999), Period(2000)))
    assert [point.captured for point in early.points] == [0, 0]
    assert count_curves(searcher, [STOP_WORD], _ALL, between=(Period(2030), None)).points == ()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), BadCondition),
        (("(",), BadCondition),
        (("harbour", "during:2011"), BadCondition),
        (("harbour present:2011",), BadCondition),
        (("harbour",) * (MOST_CURVES + 1), TooMany),
    ],
)
def test_what_is_no_curve_is_refused(archive: Archive, words: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        count_curves(_searcher(archive, to_readers=False), words, _ALL)


def test_too_many_periods_are_refused_and_a_deadline_ends_it(archive: Archive) -> None:
    searcher = _searcher(archive, to_readers=False)
    with pytest.raises(TooMany, match=str(MOST_PERIODS)):
        count_curves(searcher, ["harbour"], _ALL, PeriodLength.MONTH, (Period(1970), Period(2030)))
    with clocks.under(clocks.Deadline(0)), pytest.raises(TookTooLong):
        count_curves(searcher, ["harbour"], _ALL)


# -- the command -------------------------------------------------------------------------------------------------------


def _command(archive: Archive, *words: str) -> str:
    answer = webarc("curve", "--archive", str(archive.root), *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _of_csv(text: str) -> dict[str, dict[str, int]]:
    """The numbers of a file, by period and words; `` has what was captured."""
    numbers: dict[str, dict[str, int]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        captured, versions = int(row["captured"]), int(row["versions"])
        assert row["few"] == ("true" if captured < FEW else "false")
        assert (
            row["share"] == "" if not captured else float(row["share"]) == pytest.approx(versions / captured, abs=1e-6)
        )
        numbers.setdefault(row["period"], {})[row["words"]] = versions
        numbers[row["period"]][""] = captured
    return numbers


def _expected(words: Sequence[str], *, to_readers: bool = False) -> dict[str, dict[str, int]]:
    scanned = _scan(words, to_readers=to_readers)
    return {
        str(year): dict(zip(("", *words), scanned.get(str(year), (0,) * (len(words) + 1)), strict=True))
        for year in range(2011, 2020)
    }


@pytest.mark.parametrize("options", [(), ("--as-reader",)])
def test_the_command_has_the_numbers_of_the_scan(archive: Archive, options: tuple[str, ...]) -> None:
    words = WORDS[:4]
    expected = _expected(words, to_readers=bool(options))
    assert _of_csv(_command(archive, *words, *options, "--format", "csv")) == expected
    rows = json.loads(_command(archive, *words, *options, "--json"))
    assert {(row["period"], row["words"]): row["versions"] for row in rows} == {
        (period, word): numbers[word] for period, numbers in expected.items() for word in words
    }
    assert {row["share"] for row in rows if not row["captured"]} == {None}
    table = _command(archive, *words, *options).splitlines()
    assert table[0].split() == ["year", "captured", *words]
    for line, (period, numbers) in zip(table[1:], expected.items(), strict=False):
        assert line.startswith(f"{period}{' *' if numbers[''] < FEW else ''} ")
        assert all(f"({numbers[word]})" in line for word in words if numbers[""])
    assert table[-1].startswith("* fewer than 20 versions")


def test_the_same_words_twice_are_two_columns(archive: Archive) -> None:
    table = _command(archive, "captured", "year", "harbour", "harbour").splitlines()
    assert table[0].split() == ["year", "captured", "captured", "year", "harbour", "harbour"]


def test_the_command_draws_a_file(archive: Archive) -> None:
    root = ElementTree.fromstring(_command(archive, *WORDS[:8], "--format", "svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(WORDS[:8]) < set(texts) and "fewer than 20 versions" in texts


@pytest.mark.parametrize(
    ("words", "said"),
    [(("a", "--from", "x"), "no year"), (("a", "--from", "2012", "--to", "2011"), "before"), (("(",), "never closed"),
     (("a",) * 9, "8 at most"), (("a", "--domain", "x/y"), "no host"), ((), "Missing argument")],
)  # fmt: skip
def test_faults_are_told(archive: Archive, words: tuple[str, ...], said: str) -> None:
    answer = webarc("curve", "--archive", str(archive.root), *words)
    assert answer.returncode in (1, 2) and said in answer.stderr and not answer.stdout


# -- the room ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive) as found:
        yield found


def test_the_page_has_picture_table_and_files_of_what_readers_see(room: Served) -> None:
    words = WORDS[:3]
    address = page.address(words)
    answer = room.get(address, {"Accept-Language": "en"})
    assert answer.status == 200
    found = LexborHTMLParser(answer.body)
    expected = _expected(words, to_readers=True)
    rows = [row for row in found.css("tbody tr") if row.css_first("th") is not None]
    table = {}
    for row in rows:
        head = row.css_first("th")
        assert head is not None
        period = head.text(deep=True).split()[0]
        assert ("fewer than 20" in head.text(deep=True)) is (expected[period][""] < FEW)
        cells = row.css("td")
        numbers = [cell.css_first(".under") for cell in cells[1:]]
        counts = [int((number.text(deep=True).split() or ["0"])[0]) if number else 0 for number in numbers]
        table[period] = dict(zip(("", *words), (int(cells[0].text()), *counts), strict=True))
    assert table == expected
    assert len(found.css("svg.curves g")) == len(words) and [item.text() for item in found.css(".legend bdi")] == [
        *words
    ]
    files = {
        (node.attributes["href"] or "").partition("?")[0]: node.attributes["href"] for node in found.css(".takeaway a")
    }
    assert files.keys() == {"/curve.csv", "/curve.svg"}
    assert _of_csv(room.get(files["/curve.csv"] or "").text) == expected
    drawn = room.get(files["/curve.svg"] or "")
    assert drawn.headers["content-type"].startswith("image/svg+xml") and ElementTree.fromstring(drawn.text) is not None


def test_each_number_leads_to_its_search(room: Served) -> None:
    found = LexborHTMLParser(room.get(page.address([STOP_WORD], site=HOSTS[0])).body)
    link = found.css_first("tbody a")
    assert link is not None
    searched = LexborHTMLParser(room.get(link.attributes["href"] or "").body)
    assert searched.css("article.hit") and all(HOSTS[0] in hit.text() for hit in searched.css("article.hit .url"))


@pytest.mark.parametrize(
    ("query", "said"),
    [("q=%28", "never closed"), ("q=a&from=x", "no year"), ("&".join(["q=a"] * 9), "8 at most"),
     ("q=a&by=month&from=1900", "at most"), ("q=a&q=b+during%3A2011", "during")],
)  # fmt: skip
def test_the_page_tells_faults_and_keeps_what_was_typed(room: Served, query: str, said: str) -> None:
    found = LexborHTMLParser(room.get(f"/curve?{query}").body)
    fault = found.css_first("#fault")
    assert fault is not None and said in fault.text()
    typed = [node.attributes.get("value") for node in found.css("input[name=q]") if node.attributes.get("value")]
    assert len(typed) == query.count("q=")
    assert room.get(f"/curve.csv?{query}").status == 400


def test_without_words_there_is_a_form_and_no_file(room: Served) -> None:
    found = LexborHTMLParser(room.get("/curve?q=&q=").body)
    assert len(found.css("input[name=q]")) == 2 and found.css_first("svg.curves") is None
    assert room.get("/curve.svg").status == 400 and room.get("/curve.png?q=a").status == 404


def test_an_address_has_what_narrows_and_nothing_else() -> None:
    assert page.address(["a b", "c"], site="e.org", type="", sort="date") == "/curve?q=a+b&q=c&site=e.org"
    narrowing: Mapping[str, str] = {"language": "de"}
    assert page.address(["ü"], **narrowing) == "/curve?q=%C3%BC&language=de"
