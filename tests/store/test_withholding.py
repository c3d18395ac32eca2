"""`withhold`: all spellings of a page, counted, and given back together."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from agent.indexing import fulltext
from agent.indexing.recovery import recover
from agent.maintenance.backups import backup, restore
from agent.maintenance.verification import verify
from agent.operations import records, withholding
from tests.support import archives
from tests.support.crawls import run_command
from tests.support.readercommand import webarc
from tests.support.rooms import Page, Served, digits, published, served
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.access.lifted_rules import lifted_rules
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.workflow import Decision
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import TookTooLong, UsageError
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.system import clocks
from webarcfs.client import WebarchiveClient

pytestmark = pytest.mark.store

_DOMAIN, _WORD = "www.example.org", "zymurgical"
_HOME = f"http://{_DOMAIN}/"
_WHEN = datetime(2020, 1, 1, 12, tzinfo=CET)
_ANNA = Acting("anna", None)
#: The spellings of three places: as one may be archived, and as one may be typed.
_PLACES = {
    "folder": (f"{_HOME}dir/", f"{_HOME}dir/index.html"),
    "home": (_HOME, f"{_HOME}index.html"),
    "query": (f"{_HOME}dir/?a=1", f"{_HOME}dir/index.html?a=1"),
}


def _page(word: str) -> Page:
    return Page(f"<title>{word}</title><p>{word}".encode(), title=word)


def _archive(folder: Path, url: str, **more: Page) -> Archive:
    archive = archives.make_archive(folder)
    pages = {f"{_HOME}other.html": _page("other"), url: _page(_WORD)}
    published(archive, _DOMAIN, pages | {f"{_HOME}{name}.html": page for name, page in more.items()}, _WHEN)
    recover(archive)
    fulltext.bring_in_step(archive)
    return archive


def _doors(archive: Archive, urls: tuple[str, ...]) -> set[str]:
    """The doors by which a reader gets the page."""
    root, found = str(archive.root), set()
    with served(archive) as room:
        for url in urls:
            paths = {
                "replay": f"/web/{digits(_WHEN)}mp_/{url}",
                "as it was sent": f"/web/{digits(_WHEN)}id_/{url}",
                "room's search": f"/search?q={_WORD}",
                "versions": f"/versions?url={quote(url, safe='')}",
            }
            found |= {name for name, path in paths.items() if f"<p>{_WORD}" in room.get(path).text}
            found |= {"cdx"} if room.get(f"/cdx?url={quote(url, safe='')}").text.strip() else set()
    answers = {
        "search": webarc("search", _WORD, "--archive", root, "--as-reader"),
        "query": webarc("query", f"title = '{_WORD}'", "--format", "csv", "--archive", root, "--as-reader"),
    }
    exported = Path(tempfile.mkdtemp(dir=archive.root.parent)) / "x.warc.gz"
    assert webarc("export", str(exported), "--archive", root, "--as-reader").returncode == 0
    found |= {"export"} if _WORD.encode() in gzip.decompress(exported.read_bytes()) else set()
    return found | {name for name, answer in answers.items() if _WORD in answer.stdout}


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("archived", [0, 1])
@pytest.mark.parametrize("typed", [0, 1])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nobody_gets_a_page_that_is_withheld_by_any_spelling(
    tmp_path: Path, place: str, archived: int, typed: int, scheme: str
) -> None:
    urls = _PLACES[place]
    archive = _archive(tmp_path, urls[archived])
    assert {"replay", "as it was sent", "cdx", "search", "query", "export"} <= _doors(archive, urls)
    spelling = urls[typed].replace("http:", f"{scheme}:")
    (withheld,) = withholding.withhold(archive, [spelling], _ANNA, reason="court")
    assert _doors(archive, urls) == set()
    assert withheld.count == 1
    assert [rule.url.partition(":")[2] for rule in withheld.rules] == [
        urls[each].partition(":")[2] for each in (typed, 1 - typed)
    ]
    withholding.lift(archive, withheld.id, _ANNA)
    assert access_rules.load(archive).rules == ()


def test_the_command_lists_the_spellings_and_gives_all_of_them_back(tmp_path: Path) -> None:
    archive = _archive(tmp_path, f"{_HOME}dir/")
    done = run_command("withhold", f"{_HOME}dir/index.html", "--reason", "court", "--archive", archive.root)
    mark = done.out.split()[0]
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"{mark} {_HOME}dir/index.html", f"{mark} {_HOME}dir/", f"{mark} takes 1 archived URL away",
    ]  # fmt: skip
    again = run_command("withhold", f"{_HOME}dir/*", "--reason", "court", "--archive", archive.root)
    lifted = run_command("withhold", "--lift", mark, "--archive", archive.root)
    assert lifted.code == 0 and lifted.out == "" and lifted.err.count(again.out.split()[0]) == 2
    lifted = run_command("withhold", "--lift", again.out.split()[0], "--archive", archive.root)
    assert lifted.out == f"{_HOME}dir/*: readers may see it again\n" and lifted.err == ""
    assert access_rules.load(archive).rules == ()


def test_what_takes_nothing_away_is_a_warning(tmp_path: Path) -> None:
    archive = _archive(tmp_path, f"{_HOME}dir/")
    done = run_command("withhold", f"{_HOME}dri/", "--reason", "court", "--archive", archive.root)
    assert done.code == 0 and "takes 0 archived URLs away" in done.out
    assert f"no archived URL is {_HOME}dri/ or {_HOME}dri/index.html;" in done.err
    archive.database.unlink()
    done = run_command("withhold", f"{_HOME}dir/", "--reason", "court", "--archive", archive.root)
    assert done.code == 0 and re.search("webarc.db cannot say how many", done.err) and "takes" not in done.out


def test_exact_takes_one_spelling(tmp_path: Path) -> None:
    archive = _archive(tmp_path, f"{_HOME}dir/")
    (withheld,) = withholding.withhold(archive, [f"{_HOME}dir/index.html"], _ANNA, reason="court", exact=True)
    assert [rule.url for rule in withheld.rules] == [f"{_HOME}dir/index.html"] and withheld.count == 0
    (withheld,) = withholding.withhold(archive, [f"{_HOME}dir/"], _ANNA, reason="court", exact=True)
    assert len(withheld.rules) == 1 and withheld.count == 1
    with pytest.raises(UsageError):
        withholding.withhold(archive, [f"{_HOME}dir/*"], _ANNA, reason="court", exact=True)


def test_the_number_is_of_urls_that_readers_lose(tmp_path: Path) -> None:
    """Also of redirects, of hosts with `www`, within the span of time, and not of what another rule allows."""
    archive = _archive(tmp_path, f"{_HOME}dir/", one=_page("1"), two=_page("2"))
    published(archive, "sub.example.org", {"http://sub.example.org/": _page("sub")}, _WHEN)
    later = _WHEN + timedelta(days=1)
    published(archive, _DOMAIN, {f"{_HOME}one.html": _page("3")}, later, redirects={f"{_HOME}old": f"{_HOME}one.html"})
    recover(archive)

    def count(url: str, captured: str = "") -> int | None:
        (withheld,) = withholding.withhold(archive, [url], _ANNA, reason="court", captured=captured)
        withholding.lift(archive, withheld.id, _ANNA)
        return withheld.count

    assert count("http://example.org/*") == 5
    assert count("http://EXAMPLE.org/OLD") == 1
    assert count(f"{_HOME}*", "2020-01-02..") == 2
    assert count("http://sub.example.org/index.html") == 1
    archive.access_rules.write_text('org,example)/one.html### - {"access": "allow"}\n')
    assert count("http://example.org/*") == 4


def test_the_reason_is_for_staff_and_the_public_text_for_readers(tmp_path: Path) -> None:
    archive = _archive(tmp_path, f"{_HOME}a")
    archive.access_rules.write_text('org,example)/a - {"access": "block", "reason": "Mrs Doe complained"}\n')
    with served(archive) as room:
        path = f"/web/{digits(_WHEN)}/{_HOME}a"
        assert room.get(path).status == 451 and "Doe" not in room.get(path).text
        said = ("--reason", "Mrs Doe complained", "--public-text", "By law.", "--archive", archive.root)
        assert run_command("withhold", f"{_HOME}a", *said).code == 0
        assert "Doe" not in room.get(path).text and "By law." in room.get(path).text
    assert "Doe" not in archive.access_rules.read_text()
    listed = run_command("withhold", "--list", "--archive", archive.root).out
    assert listed.count("Mrs Doe complained") == 2 and listed.count("By law.") == 1
    wrong = run_command("withhold", f"{_HOME}a", "--answer", "exclude", *said)
    assert wrong.code == 1 and "public text" in wrong.err


_OLD = """# rules of the office
org,example)/a - {"access": "block", "reason": "Mrs Doe complained", "url": "http://example.org/a*"}
org,example)/b### - {"access": "block", "id": "1f2e3d4c", "reason": "court", "by": "anna"}
org,www,example)/b### - {"access": "block", "id": "1f2e3d4c", "reason": "court", "by": "anna"}

org,example)/c - {"access": "exclude"}
"""


def _listed(archive: Archive, *words: str) -> list[dict[str, str]]:
    done = run_command("withhold", "--list", "--archive", archive.root, "--format", "json", *words)
    assert done.code == 0, done.err
    return list(map(json.loads, done.out.splitlines()))


def test_what_was_lifted_stays_on_record_for_staff_alone(tmp_path: Path) -> None:
    """S-withhold-5. With its reason, who withheld it and who lifted it; also what somebody took out by hand."""
    archive = _archive(tmp_path, f"{_HOME}dir/")
    (first,) = withholding.withhold(archive, [f"{_HOME}dir/"], _ANNA, reason="Mrs Doe complained")
    (second,) = withholding.withhold(archive, [f"{_HOME}b.html"], _ANNA, reason="court")
    (third,) = withholding.withhold(archive, [f"{_HOME}c.html"], _ANNA, reason="by mistake")
    assert [row["state"] for row in _listed(archive, "--all")] == ["in force"] * 4
    withholding.lift(archive, first.id, Acting("ben", None))
    lines = archive.access_rules.read_text().splitlines(keepends=True)
    archive.access_rules.write_text("".join(line for line in lines if third.id not in line))

    def lifted() -> list[tuple[str, str, str, str, bool]]:
        rows = [row for row in _listed(archive, "--all") if row["state"] == "lifted"]
        return [(row["id"], row["reason"], row["by"], row["lifted_by"], bool(row["lifted_at"])) for row in rows]

    by_ben = (first.id, "Mrs Doe complained", "anna", "ben", True)
    assert lifted() == [(third.id, "by mistake", "anna", "", False), by_ben, by_ben]
    withholding.withhold(archive, [f"{_HOME}d.html"], _ANNA, reason="new")
    assert lifted() == [(third.id, "by mistake", "anna", "", True), by_ben, by_ben]
    assert {row["id"] for row in _listed(archive)} == {row["id"] for row in _listed(archive, "--all")[:-3]}
    text = run_command("withhold", "--list", "--all", "--archive", archive.root).out
    assert re.search(r"Mrs Doe complained \[anna 2\S+\], lifted by ben 2", text)
    assert re.search(r"by mistake \[anna 2\S+\], taken out of the file by hand before 2", text)
    assert "Doe" not in archive.access_rules.read_text() + archive.access_reasons.read_text()
    with served(archive) as room:
        answers = [
            room.get(path).text for path in ("/", f"/versions?url={quote(f'{_HOME}dir/', safe='')}", "/catalogue")
        ]
    assert all("Doe" not in answer and first.id not in answer for answer in answers)
    backup(archive, tmp_path / "backup")
    assert second.id in {row["id"] for row in _listed(archive)}
    restore(tmp_path / "backup", tmp_path / "restored")
    again = directory.open_archive(tmp_path / "restored")
    assert next(row["reason"] for row in _listed(again, "--all") if row["state"] == "lifted") == "by mistake"
    done = run_command("withhold", f"{_HOME}e.html", "--all", "--reason", "x", "--archive", archive.root)
    assert done.code != 0 and "--all goes with --list" in done.err


def test_copies_of_rules_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    archive = _archive(tmp_path, f"{_HOME}dir/")
    (first,) = withholding.withhold(archive, [f"{_HOME}b.html"], _ANNA, reason="court")
    names = archive.access_rules.name, archive.access_reasons.name
    for files in ({names[0]: b"no rules\xff\n"}, {names[1]: b"{"}):
        Catalogue(archive).save([], "anna", "damaged", files=files)
    withholding.withhold(archive, [f"{_HOME}c.html"], _ANNA, reason="court")
    withholding.lift(archive, first.id, _ANNA)
    lifted = [(rule.rule.id, rule.rule.reason, rule.by) for rule in lifted_rules(archive)]
    assert lifted == [(first.id, "court", "anna")]
    with clocks.under(clocks.Deadline(-1.0)), pytest.raises(TookTooLong):
        list(lifted_rules(archive))


def _file_of_reasons(archive: Archive) -> dict[str, dict[str, str]]:
    content = json.loads(archive.access_reasons.read_text())
    assert content.keys() == {"version", "reasons"} and archive.access_reasons.stat().st_mode & 0o777 == 0o600
    return content["reasons"]


def test_reasons_leave_the_file_that_programs_for_readers_read(tmp_path: Path) -> None:
    """S-withhold-1. `upgrade` moves the reasons of older programs, says how many, and keeps what people wrote."""
    archive = _archive(tmp_path, f"{_HOME}a")
    archive.access_rules.write_text(_OLD)
    before = access_rules.load_for_staff(archive)
    assert not any(rule.reason for rule in access_rules.load(archive).rules)
    upgraded = run_command("upgrade", "--archive", archive.root)
    assert upgraded.code == 0 and "the reasons of 3 rules are for staff alone now" in upgraded.out, upgraded.err
    text = archive.access_rules.read_text()
    assert "Doe" not in text and "court" not in text and "public_text" not in text
    assert text.startswith("# rules of the office\n") and text.endswith('\n\norg,example)/c - {"access": "exclude"}\n')
    assert access_rules.load_for_staff(archive) == before
    assert sorted(about["reason"] for about in _file_of_reasons(archive).values()) == ["Mrs Doe complained", "court"]
    again = run_command("upgrade", "--archive", archive.root)
    assert again.code == 0 and "reasons of" not in again.out, "once"
    listed = run_command("withhold", "--list", "--archive", archive.root).out
    assert listed.count("Mrs Doe complained") == 1 and listed.count("court") == 2
    assert list(verify(archive)) == []


def test_a_change_moves_the_reasons_of_older_programs_as_well(tmp_path: Path) -> None:
    archive = _archive(tmp_path, f"{_HOME}a")
    archive.access_rules.write_text(_OLD)
    done = run_command("withhold", f"{_HOME}z", "--reason", "new", "--exact", "--archive", archive.root)
    assert done.code == 0 and "the reasons of 3 rules are for staff alone now" in done.err
    assert "Doe" not in archive.access_rules.read_text()
    assert {about["reason"] for about in _file_of_reasons(archive).values()} == {"Mrs Doe complained", "court", "new"}
    assert run_command("withhold", "--lift", "1f2e3d4c", "--archive", archive.root).code == 0
    assert {about["reason"] for about in _file_of_reasons(archive).values()} == {"Mrs Doe complained", "new"}
    history = Catalogue(archive)
    assert history.file("access-reasons.json") == archive.access_reasons.read_bytes(), "a copy in the catalogue"


def test_reasons_come_back_from_a_backup_and_verify_misses_them(tmp_path: Path) -> None:
    """S-withhold-3."""
    archive = _archive(tmp_path, f"{_HOME}a")
    (withheld,) = withholding.withhold(archive, [f"{_HOME}a"], _ANNA, reason="Mrs Doe complained")
    assert backup(archive, tmp_path / "backup").failed == ()
    restore(tmp_path / "backup", tmp_path / "again")
    again = directory.open_archive(tmp_path / "again")
    assert _file_of_reasons(again) == {withheld.id: {"reason": "Mrs Doe complained", "role": ""}}
    assert list(verify(again)) == []
    again.access_reasons.unlink()
    (line,) = [line for line in verify(again) if line.startswith("access-reasons.json")]
    assert "it is missing" in line and withheld.id in line and "catalogue.git has its last state" in line
    assert "Doe" not in line
    again.access_reasons.write_text('{"version": 1, "reasons": {}}')
    assert any("it lacks reasons" in line for line in verify(again))
    again.access_reasons.write_text("{")
    assert any("no reasons of rules" in line for line in verify(again))


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"\xff", b'{"version": 2, "reasons": {}}', b'{"version": 1, "reasons": []}']
)
def test_reasons_that_cannot_be_read_change_nothing_for_readers(tmp_path: Path, content: bytes) -> None:
    """S-withhold-3."""
    archive = _archive(tmp_path, f"{_HOME}a")
    (withheld,) = withholding.withhold(archive, [f"{_HOME}a"], _ANNA, reason="Mrs Doe complained")
    archive.access_reasons.write_bytes(content)
    rules = archive.access_rules.read_bytes()
    with served(archive) as room:
        assert room.get(f"/web/{digits(_WHEN)}/{_HOME}a").status == 451
        assert room.get(f"/web/{digits(_WHEN)}/{_HOME}other.html").status == 200
    listed = run_command("withhold", "--list", "--archive", archive.root)
    assert listed.code == 0 and withheld.id in listed.out and "the reasons cannot be read" in listed.err
    refused = run_command("withhold", f"{_HOME}b", "--reason", "x", "--archive", archive.root)
    assert refused.code != 0 and "access-reasons.json" in refused.err
    assert (archive.access_rules.read_bytes(), archive.access_reasons.read_bytes()) == (rules, content), (
        "nothing is lost"
    )


def test_rules_are_listed_where_the_file_of_reasons_cannot_be_opened(tmp_path: Path) -> None:
    """S-withhold-3."""
    archive = _archive(tmp_path, f"{_HOME}a")
    (withheld,) = withholding.withhold(archive, [f"{_HOME}a"], _ANNA, reason="Mrs Doe complained")
    assert access_rules.load_with_fault(archive) == (access_rules.load_for_staff(archive), "")
    archive.access_reasons.unlink()
    archive.access_reasons.mkdir()
    rules, fault = access_rules.load_with_fault(archive)
    assert rules == access_rules.load(archive) and "access-reasons.json" in fault
    listed = run_command("withhold", "--list", "--archive", archive.root)
    assert listed.code == 0 and withheld.id in listed.out and "the reasons cannot be read" in listed.err


_REASONS = ["\u05e2\u05e8\u05d1 <b> & 'x'", "\u4f8b" * 4_000, 'a "quoted" \\ one', "two\n lines\tand tabs", "{} - null"]


@pytest.mark.parametrize("reason", _REASONS, ids=range(len(_REASONS)))
def test_reasons_in_every_script_come_back_as_a_line(tmp_path: Path, reason: str) -> None:
    """S-withhold-4."""
    archive = _archive(tmp_path, f"{_HOME}a")
    withholding.withhold(archive, [f"{_HOME}a"], _ANNA, reason=reason, public_text=reason)
    assert {rule.reason for rule in access_rules.load_for_staff(archive).rules} == {" ".join(reason.split())}
    assert {rule.public_text for rule in access_rules.load(archive).rules} == {" ".join(reason.split())}


@pytest.mark.parametrize("reason", ["x" * 4_001, "x" * 10_240, "a\0b", "a\x1bb", "a\udcffb"])
def test_a_hostile_reason_is_a_clear_error_and_writes_nothing(tmp_path: Path, reason: str) -> None:
    """S-withhold-4."""
    archive = _archive(tmp_path, f"{_HOME}a")
    for texts in ({"reason": reason}, {"reason": "court", "public_text": reason}):
        with pytest.raises(UsageError, match="a reason "):
            withholding.withhold(archive, [f"{_HOME}a"], _ANNA, **texts)
    name = f"{_WHEN:%Y%m%dT%H%M%S}-p"
    before = Catalogue(archive).read(name)[1]
    with pytest.raises(UsageError, match="a reason "):
        records.decide(archive, name, Decision.WITHDRAW, _ANNA, reason)
    assert not archive.access_rules.exists() and not archive.access_reasons.exists()
    assert Catalogue(archive).read(name)[1] == before


@pytest.mark.parametrize("point", range(4))
def test_a_kill_while_reasons_move_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: int) -> None:
    """At each place where a file is replaced: the process ends before the next one."""
    archive = _archive(tmp_path, f"{_HOME}a")
    archive.access_rules.write_text(_OLD)
    before = {(rule.key, rule.reason) for rule in access_rules.load_for_staff(archive).rules}
    replaced = settings_files.replace_file
    calls = 0

    def until(*arguments: object, **more: object) -> None:
        nonlocal calls
        if calls == point:
            raise KeyboardInterrupt
        calls += 1
        replaced(*arguments, **more)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(settings_files, "replace_file", until)
    with contextlib.suppress(KeyboardInterrupt):
        access_rules.withhold(archive, f"{_HOME}z", "anna", "new", exact=True)
    monkeypatch.undo()
    after = {(rule.key, rule.reason) for rule in access_rules.load_for_staff(archive).rules}
    assert after in (before, before | {(access_rules.rule_key(f"{_HOME}z", exact=True), "new")})
    assert access_rules.move_reasons(archive, "anna") in (0, 3)
    assert {(rule.key, rule.reason) for rule in access_rules.load_for_staff(archive).rules} == after
    assert "Doe" not in archive.access_rules.read_text()


@pytest.mark.parametrize("access", [Access.BLOCK, Access.EXCLUDE])
def test_no_count_of_a_record_tells_of_what_is_withheld(tmp_path: Path, access: Access) -> None:
    """A record's own counts are of all its documents: they are left out where a reader may not see all."""
    archive = _archive(tmp_path, f"{_HOME}secret.html")
    published(archive, "other.example.net", {"http://other.example.net/": _page("x")}, _WHEN, publication="q")
    recover(archive)
    catalogue = Catalogue(archive)
    said = {22: "77770", 23: "88880", 25: "html: 99990", 62: "/secret.html: sound", 64: "released: asked by Mrs Doe"}
    names = [f"{_WHEN:%Y%m%dT%H%M%S}-{publication}" for publication in "pq"]
    for name in names:
        record, blob = catalogue.read(name)
        catalogue.save([record.with_values(said, "anna", _WHEN)], "anna", "counted", expected={name: blob})
    counts = re.compile(r"77.?770|88.?880|99.?990|secret|Doe|75.9")  # also as people write them

    def shown(room: Served, name: str) -> set[str]:
        paths = [f"/snapshot/{name}{kind}" for kind in ("", ".xml", ".json", ".dc")]
        return {found for path in paths for found in counts.findall(room.get(path).text)}

    def counted(publication: str) -> list[str]:
        with WebarchiveClient(archive.root, reader="") as client:
            return [record.text(number) for record in client.records(publication) for number in said]

    with served(archive) as room:
        assert {"77770", "88880", "99990", "secret"} <= shown(room, names[0]) and "Doe" not in shown(room, names[0])
        assert counts.search(room.get("/?all=1").text)
        (rule,) = access_rules.withhold(archive, f"{_HOME}secret.html", "anna", "court", access=access)
        assert shown(room, names[0]) == set() and counted("p") == [""] * 5
        assert {"77770", "88880", "99990", "secret"} <= shown(room, names[1]) and "88880" in counted("q")
        assert not counts.search(room.get("/publication/p").text) and counts.search(room.get("/publication/q").text)
        access_rules.lift(archive, rule.id, "anna")
        assert "88880" in shown(room, names[0])
