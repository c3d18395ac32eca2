"""Short names of snapshots: each means what a plain reading of all commitTags says, for staff and for readers."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.indexing.recovery import recover
from tests.support.named_snapshots import CDN, KEPT, OLD, PORT, TOWN, Kept, archive_of
from tests.support.readercommand import webarc, webarc_bytes
from webarcfs.access.gate import Gate, Reader
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.commands.snapshot_names import Beside, VisibleSnapshots, newer_than_latest, resolve

pytestmark = pytest.mark.store


@pytest.fixture(scope="module", params=["webarc.db", "git alone"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """An archive of all snapshots of the model; without its database git is asked."""
    archive = archive_of(tmp_path_factory.mktemp("names"))
    if request.param == "webarc.db":
        recover(archive)
    return archive


# -- the model ---------------------------------------------------------------------------------------------------------

#: The lengths of years, months, days, hours, minutes and seconds that are cut from a commitTag.
_FORMS = (4, 7, 10, 13, 16, 19)
_WHOLE = 19


def _meant(text: str, host: str, publication: str, rows: list[Kept]) -> str:
    """What a name means: a commitTag, `many` or `none`."""
    if text.isdecimal() and len(text) < _FORMS[0] and 0 < int(text) <= len(KEPT) and KEPT[int(text) - 1] in rows:
        return KEPT[int(text) - 1].tag
    head, _, of = text.partition("@")
    is_time = len(head) in _FORMS and (bool(of) or "@" not in text)
    if not head.startswith("latest"):
        begun = [row.tag for row in rows if row.tag.startswith(text)]
        if not is_time:
            return _only([tag for tag in begun if not host or tag.endswith(f"@{host}")])
        if of and len(head) == _WHOLE and (text in begun or of in {row.host for row in rows}):
            return text if text in begun else "none"
        if of and len(head) == _WHOLE and begun:
            return _only(begun)
    host, publication = _whose(of, host, publication, rows)
    return _of_host(head, host, [row for row in rows if publication in ("", row.publication)])


def _only(tags: list[str]) -> str:
    return tags[0] if len(tags) == 1 else "many" if tags else "none"


def _whose(of: str, host: str, publication: str, rows: list[Kept]) -> tuple[str, str]:
    """The host, `many` or `none`, and the publication that are named."""
    if of in {row.host for row in rows}:
        return of, publication
    publication = of or publication
    hosts = {row.host for row in rows if publication in ("", row.publication)}
    if host and (not of or host in hosts):
        return host, publication
    with_pages = sorted(hosts - {CDN} or hosts)
    return _only(with_pages), publication


def _of_host(head: str, host: str, rows: list[Kept]) -> str:
    if host in ("many", "none"):
        return host
    own = sorted((row for row in rows if row.host == host), key=lambda row: row.time, reverse=True)
    if head.startswith("latest"):
        counting = [row.tag for row in own if row.is_complete] or [row.tag for row in own if row.is_import]
        back = int(head.partition("~")[2] or 0)
        return counting[back] if back < len(counting) else "none"
    return next((row.tag for row in own if row.time[: len(head)] <= head), "none")


_HOSTS = st.sampled_from(["", TOWN, PORT, OLD, CDN])
_OF = st.sampled_from(["", TOWN, PORT, OLD, "town", "news", "old", "www.nowhere.example"])
_TIMES = st.sampled_from(sorted({row.time for row in KEPT} | {"2017-05-06T07:08:09", "2031-05-06T07:08:09"}))


@st.composite
def names(draw: st.DrawFn) -> str:
    """Dates and times, with and without a host; `latest`; commitTags cut anywhere."""
    kind = draw(st.sampled_from(["time", "latest", "cut"]))
    of = draw(_OF)
    if kind == "cut":
        tag = draw(st.sampled_from(KEPT)).tag
        return tag[: draw(st.integers(1, len(tag)))]
    if kind == "latest":
        back = draw(st.sampled_from(["", "~0", "~1", "~2", "~5", "~99"]))
        return f"latest{back}{'@' * bool(of)}{of}"
    return f"{draw(_TIMES)[: draw(st.sampled_from(_FORMS))]}{'@' * bool(of)}{of}"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names(), _HOSTS, st.sampled_from(["", "town", "news"]), st.booleans())
def test_a_name_means_what_all_commit_tags_say(
    archive: Archive, text: str, host: str, publication: str, is_reader: bool
) -> None:
    rows = [row for row in KEPT if not (is_reader and row.is_hidden)]
    snapshots = VisibleSnapshots(archive, Gate(archive, Reader()) if is_reader else None)
    meant = _meant(text, host, publication, rows)
    try:
        resolved = str(resolve(text, snapshots, Beside(host, publication)))
    except UsageError as error:
        resolved = "many" if "\n" in str(error) else "none"
        named = [row.tag for row in KEPT if row.tag in str(error)]
        assert all(tag in {row.tag for row in rows} for tag in named), "a hidden one is listed"
    except NotFound as error:
        resolved = "none"
        assert all(row.tag not in str(error) for row in KEPT if is_reader and row.is_hidden), "a hidden one is named"
    if resolved == text and text not in {row.tag for row in rows}:
        resolved = "none"  # of a whole commitTag it is asked afterwards whether there is such a snapshot
    assert resolved == meant


@pytest.mark.parametrize("is_reader", [False, True])
def test_newer_snapshots_that_latest_does_not_count_are_named(archive: Archive, is_reader: bool) -> None:
    rows = [row for row in KEPT if not (is_reader and row.is_hidden)]
    snapshots = VisibleSnapshots(archive, Gate(archive, Reader()) if is_reader else None)
    numbers = set()
    for host, publication in ((TOWN, ""), (TOWN, "town"), (TOWN, "news"), (PORT, ""), (OLD, "")):
        meant = _meant("latest", host, publication, rows)
        tag, beside = CommitTag.parse(meant), Beside(host, publication)
        own = [row for row in rows if row.host == host and publication in ("", row.publication)]
        newer = sorted((row.tag for row in own if row.tag > meant), reverse=True)
        assert [str(found) for found in newer_than_latest("latest", tag, snapshots, beside)] == newer
        assert newer_than_latest("latest~1", tag, snapshots, beside) == []
        assert newer_than_latest(meant, tag, snapshots, beside) == []
        numbers.add(len(newer))
    assert len(numbers) > 1


# -- on the command line -----------------------------------------------------------------------------------------------


def _tags(host: str, *, complete: bool = False) -> list[str]:
    """The commitTags of a host, newest first."""
    rows = [row for row in KEPT if row.host == host and (row.is_complete or not complete)]
    return [row.tag for row in sorted(rows, key=lambda row: row.time, reverse=True)]


def test_the_whole_name_is_told_where_a_short_one_was_used(archive: Archive) -> None:
    url, (newest, before, *_) = f"http://{TOWN}/", _tags(TOWN, complete=True)
    page = webarc_bytes("cat", "latest", url, "--archive", archive.root)
    assert page.stderr.decode() == f"webarc: latest is {newest}\n"
    assert page.stdout.decode() == str([row.tag for row in KEPT].index(newest))
    done = webarc("diff", "latest~1", "latest", url, "--archive", str(archive.root))
    assert done.returncode == 0 and done.stdout.splitlines()[:2] == [f"--- {before}", f"+++ {newest}"]
    assert done.stderr == f"webarc: latest~1 is {before}\nwebarc: latest is {newest}\n"
    done = webarc("stat", f"latest@{TOWN}", "--json", "--archive", str(archive.root))
    assert list(json.loads(done.stdout)) == [newest]
    assert webarc("stat", newest, "--archive", str(archive.root)).stderr == ""


@pytest.mark.parametrize("words", [("latest", f"latest~1@{TOWN}"), (f"latest@{TOWN}", "latest~1")])
def test_a_host_that_is_named_once_is_that_of_both(archive: Archive, words: tuple[str, str]) -> None:
    done = webarc("diff", *words, "--archive", str(archive.root))
    assert done.returncode == 0, done.stderr
    assert all(f"is {tag}" in done.stderr for tag in _tags(TOWN, complete=True)[:2])


def test_a_crawl_is_named_by_its_number_its_name_and_its_publication(archive: Archive) -> None:
    """Of a publication it is the newest crawl, for a reader the newest that is released; of a hidden one nothing."""
    hidden = next(number for number, row in enumerate(KEPT, 1) if row.is_hidden)
    seen = next(number for number, row in enumerate(KEPT, 1) if not row.is_hidden and row.host == TOWN)
    for who, rows in (((), KEPT), (("--as-reader",), [row for row in KEPT if not row.is_hidden])):
        newest = max((row for row in rows if row.publication == "news"), key=lambda row: row.time)
        for name in ("news", str(KEPT.index(newest) + 1), f"{newest.time.replace('-', '').replace(':', '')}-news"):
            done = webarc("stat", name, *who, "--json", "--archive", str(archive.root))
            assert (done.returncode, done.stderr) == (0, f"webarc: {name} is {newest.tag}\n")
    for name in (str(hidden), "999999999999999999999"):
        done = webarc("stat", name, "--as-reader", "--archive", str(archive.root))
        assert done.returncode == 1 and KEPT[hidden - 1].tag not in done.stderr
        assert "no commitTag and no time" in done.stderr or "write more of one" in done.stderr
    done = webarc("diff", str(seen), str(seen), "--archive", str(archive.root))
    assert done.returncode == 0, done.stderr


def test_snapshots_without_a_difference_are_said_to_be_alike(archive: Archive) -> None:
    tag = _tags(TOWN)[0]
    done = webarc("diff", tag, tag, "--archive", str(archive.root))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"webarc: {tag} and {tag} do not differ\n")
    done = webarc("diff", tag, tag, "--json", "--archive", str(archive.root))
    assert (done.returncode, done.stderr) == (0, "")


def test_candidates_are_listed_and_the_rest_is_counted(archive: Archive) -> None:
    done = webarc("stat", "201", "--archive", str(archive.root))
    begun = [row for row in KEPT if row.tag.startswith("201")]
    newest = sorted(begun, key=lambda row: ([-ord(letter) for letter in row.time], row.host))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"webarc: '201' begins {len(begun)} commitTags; write more of one:",
        *(f"webarc:   {row.tag}" for row in newest[:10]),
        f"webarc:   and {len(begun) - 10} more",
    ]
    done = webarc("stat", "latest", "--archive", str(archive.root))
    assert done.returncode == 1 and "the archive has 3; write one behind @" in done.stderr
    assert all(_tags(host, complete=host != OLD)[0] in done.stderr for host in (TOWN, PORT, OLD))
    assert CDN not in done.stderr  # it has no page


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["stat", f"latest~99@{TOWN}"], 2, "snapshots that latest counts; the first is"),
        (["stat", f"2001@{TOWN}"], 2, f"no snapshot up to 2001; the first is {_tags(TOWN)[-1]}"),
        (["stat", "latest~x"], 1, "a number, as in latest~1"),
        (["stat", "latest@www.town.exampl"], 2, f"did you mean {TOWN}"),
        (["stat", "2019-W10"], 1, "no commitTag and no time"),
        (["stat", "latest@../../etc"], 2, "no host and no publication"),
        (["stat", f"latest@{'x' * 5000}"], 2, "no host and no publication"),
        (["links", "--count", "201"], 1, "write more of one"),
        (["export", "--since", "latest~9", "--publication", "news", "x"], 2, "of www.town.example"),
        (["diff", f"latest@{TOWN}", f"latest@{PORT}"], 1, "different domains"),
    ],
)
def test_names_that_are_none_are_explained(archive: Archive, words: list[str], code: int, said: str) -> None:
    done = webarc(*words, "--archive", str(archive.root))
    assert done.returncode == code and said in done.stderr, done.stderr


def test_readers_have_names_for_what_they_see(archive: Archive) -> None:
    shown = [row for row in KEPT if row.host == TOWN and row.is_complete and not row.is_hidden]
    newest = max(shown, key=lambda row: row.time)
    done = webarc("stat", f"latest@{TOWN}", "--as-reader", "--archive", str(archive.root))
    if archive.database.exists():
        assert (done.returncode, done.stderr) == (0, f"webarc: latest@{TOWN} is {newest.tag}\n")
    done = webarc("stat", "201", "--as-reader", "--archive", str(archive.root))
    begun = sum(not row.is_hidden and row.tag.startswith("201") for row in KEPT)
    assert done.returncode == 1 and f"begins {begun} commitTags" in done.stderr
    assert not any(row.tag in done.stderr for row in KEPT if row.is_hidden)
