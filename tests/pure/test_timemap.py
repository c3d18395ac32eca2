"""TimeMaps: every memento once, in pages, in three forms."""

import json
import re

import pytest

from webarcfs.access.visible_captures import NEVER, VisibleCapture
from webarcfs.room.replay import replay_url
from webarcfs.room.replay.memento import MOST_MEMENTOS, timemap
from webarcfs.room.replay.replay_url import MapFormat, TimeMap, digits_of

pytestmark = pytest.mark.pure

BASE = "http://127.0.0.1:8080"
URL = "http://e.org/a?b=c"
NEW_YEAR = 1_767_225_600
_LINK = re.compile(r'<([^>]*)>; rel="([^"]*)"((?:; [a-z]+="[^"]*")*)(?:,\n|\n)')


def captures(count: int, step: int = 3_600) -> list[VisibleCapture]:
    return [
        VisibleCapture(
            url=URL, path="/e.org/a", surt="org,e)/a?b=c", since=NEW_YEAR + place * step, last=NEW_YEAR + place * step,
            until=NEVER, captured=NEW_YEAR + place * step, status=200, blob=f"{place:040x}",
        )
        for place in range(count)
    ]  # fmt: skip


def written(known: list[VisibleCapture], form: MapFormat = MapFormat.LINK, since: int | None = None) -> str:
    pieces = timemap(BASE, TimeMap(form, URL, since), known)
    assert pieces is not None
    return "".join(pieces)


def links(text: str) -> list[tuple[str, str, dict[str, str]]]:
    found = [(uri, rel, dict(re.findall(r'; ([a-z]+)="([^"]*)"', rest))) for uri, rel, rest in _LINK.findall(text)]
    assert "".join(match[0] for match in _LINK.finditer(text)) == text
    return found


def mementos(text: str) -> list[str]:
    return [uri for uri, rel, _ in links(text) if "memento" in rel.split()]


def test_a_timemap_has_each_memento_with_its_time() -> None:
    assert written(captures(3)) == (
        f'<{URL}>; rel="original",\n'
        f'<{BASE}/web/{URL}>; rel="timegate",\n'
        f'<{BASE}/timemap/link/{URL}>; rel="self"; type="application/link-format"; '
        'from="Thu, 01 Jan 2026 00:00:00 GMT"; until="Thu, 01 Jan 2026 02:00:00 GMT",\n'
        f'<{BASE}/web/20260101000000mp_/{URL}>; rel="first memento"; datetime="Thu, 01 Jan 2026 00:00:00 GMT",\n'
        f'<{BASE}/web/20260101010000mp_/{URL}>; rel="memento"; datetime="Thu, 01 Jan 2026 01:00:00 GMT",\n'
        f'<{BASE}/web/20260101020000mp_/{URL}>; rel="last memento"; datetime="Thu, 01 Jan 2026 02:00:00 GMT"\n'
    )


def test_the_only_memento_is_the_first_and_the_last() -> None:
    assert 'rel="first last memento"' in written(captures(1))


@pytest.mark.parametrize("form", MapFormat)
def test_without_mementos_there_is_no_timemap(form: MapFormat) -> None:
    assert timemap(BASE, TimeMap(form, URL), []) is None
    assert timemap(BASE, TimeMap(form, URL, NEW_YEAR + 1), captures(1)) is None


@pytest.mark.large
def test_pages_that_follow_each_others_links_have_all_mementos_once() -> None:
    known = captures(2 * MOST_MEMENTOS + 3)
    first = links(written(known))
    pages = [uri for uri, rel, _ in first if rel in ("self", "timemap")]
    assert len(pages) == 3
    found: list[str] = []
    for uri in pages:
        asked = replay_url.parse(uri.removeprefix(BASE).partition("?")[0].encode(), uri.partition("?")[2].encode())
        assert isinstance(asked, TimeMap)
        text = written(known, since=asked.since)
        read = links(text)
        (here,) = (each for each in read if each[1] == "self")
        assert here[0] == uri
        assert {each[0] for each in read if each[1] == "timemap"} == set(pages) - {uri}
        assert (here[2]["from"], here[2]["until"]) == (
            next(each[2]["datetime"] for each in read if "memento" in each[1]), read[-1][2]["datetime"],
        )  # fmt: skip
        found += mementos(text)
    assert found == [f"{BASE}/web/{digits_of(each.since)}mp_/{URL}" for each in known]
    assert sum("first" in each[1] for each in first) == 1


def test_mementos_of_one_time_stay_on_one_page() -> None:
    known = captures(2 * MOST_MEMENTOS, step=0)
    assert len(mementos(written(known))) == 2 * MOST_MEMENTOS


def test_a_page_stays_what_it_is_when_mementos_are_added_behind_it() -> None:
    known = captures(MOST_MEMENTOS + 10)
    before = mementos(written(known[: MOST_MEMENTOS + 1], since=NEW_YEAR))
    assert before == mementos(written(known, since=NEW_YEAR))


def test_json_has_the_names_that_other_tools_use() -> None:
    known = captures(MOST_MEMENTOS + 2)
    read = json.loads(written(known, MapFormat.JSON))
    assert read["original_uri"] == URL
    assert read["timegate_uri"] == f"{BASE}/web/{URL}"
    assert read["timemap_uri"]["link_format"] == f"{BASE}/timemap/link/{URL}"
    assert (read["from"], read["until"]) == ("2026-01-01T00:00:00Z", read["mementos"]["list"][-1]["datetime"])
    assert len(read["mementos"]["list"]) == MOST_MEMENTOS
    assert read["mementos"]["first"] == read["mementos"]["list"][0]
    assert read["mementos"]["last"]["uri"].startswith(f"{BASE}/web/{digits_of(known[-1].since)}mp_/")
    (other,) = read["timemap_index"]
    page = json.loads(written(known, MapFormat.JSON, known[MOST_MEMENTOS].since))
    assert page["self"] == other["uri"]
    assert len(page["mementos"]["list"]) == 2


def test_cdxj_has_a_line_a_memento_behind_its_directives() -> None:
    lines = written(captures(3), MapFormat.CDXJ).splitlines()
    head = [line for line in lines if line.startswith("!")]
    rows = [line.partition(" ") for line in lines[len(head) :]]
    assert [row[0] for row in rows] == ["20260101000000", "20260101010000", "20260101020000"]
    assert json.loads(rows[0][2]) == {
        "uri": f"{BASE}/web/20260101000000mp_/{URL}",
        "rel": "first memento",
        "datetime": "Thu, 01 Jan 2026 00:00:00 GMT",
    }
    assert all(isinstance(json.loads(line.partition(" ")[2]), dict | list) for line in head)


def test_a_timemap_is_written_in_pieces() -> None:
    pieces = timemap(BASE, TimeMap(MapFormat.LINK, URL), captures(MOST_MEMENTOS))
    assert pieces is not None
    assert 5 < len(list(pieces)) < 20
