"""What a hand-over takes along: what readers do not see is counted, and descriptions of the crawls come with it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from lxml import etree

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from agent.jobs import exportedjob
from tests.exchange.test_leaving import OF_RECORD
from tests.support.histories import DOMAIN, History, Step
from tests.support.readercommand import in_shell, webarc
from tests.support.recorded import published
from webarcfs.access import access_rules
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Interrupted
from webarcfs.archive.model.metadata import CommitTag, compact_time
from webarcfs.export.hidden_parts import count_hidden
from webarcfs.export.selection import Asked, select

pytestmark = pytest.mark.store

_BIN = Path(sys.executable).parent
#: Two publications on one host: q saw less of it than there is. The newest crawl of p is not released.
_HISTORY = History([
    Step("p", {"mayor.html": "m", "a.html": "a", "old.html": "o"}),
    Step("q", {"a.html": "a"}, closed_for="200 years"),
    Step("p", {"mayor.html": "m", "a.html": "b"}, RecordState.COUNTED, held=True),
])  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    whole = directory.create(tmp_path / "archive")
    published(whole, _HISTORY)
    recover(whole)
    bring_in_step(whole)
    return whole


def _record(number: int) -> str:
    return f"{compact_time(_HISTORY.time(number))}-{_HISTORY.steps[number].publication}"


def _hidden(archive: Archive, out: Path | str, *words: str) -> dict[str, int]:
    done = webarc("export", "--archive", str(archive.root), "--json", *words, str(out))
    assert done.returncode == 0, done.stderr
    fields = json.loads(done.stdout)["hidden"]
    assert isinstance(fields, dict)
    return fields


def test_an_export_says_what_of_it_readers_do_not_see(archive: Archive, tmp_path: Path) -> None:
    """Pages that a rule withholds, in the snapshots that are exported; snapshots that are not open."""
    names = iter(map(str, range(99)))

    def hidden(*words: str) -> tuple[int, int, int]:
        counts = _hidden(archive, tmp_path / f"{next(names)}.warc.gz", *words)
        return counts["pages"], counts["snapshots"], counts["hosts"]

    assert hidden() == (0, 2, 1)
    access_rules.withhold(archive, f"http://{DOMAIN}/mayor.html", "anna", "a complaint")
    access_rules.withhold(archive, f"http://{DOMAIN}/old.html", "anna", "a complaint")
    access_rules.withhold(archive, f"http://{DOMAIN}/never.html", "anna", "a complaint")
    assert hidden() == (2, 2, 1)
    assert hidden("--record", _record(0)) == (2, 0, 0)
    assert hidden("--record", _record(1)) == (0, 1, 1), "its publication did not see them"
    assert hidden("--record", _record(2)) == (1, 1, 1), "one of them was gone by then"
    tags = [CommitTag(_HISTORY.time(number), DOMAIN) for number in range(3)]
    assert hidden("--since", str(tags[0])) == (0, 2, 1), "they were there before"
    assert hidden("--query", "") == (2, 1, 1)
    assert hidden("--query", "url LIKE '%/a.html'") == (0, 1, 1)
    assert hidden("--as-reader") == (0, 0, 0)


def test_counting_ends_where_somebody_wants_the_end(archive: Archive) -> None:
    access_rules.withhold(archive, f"http://{DOMAIN}/mayor.html", "anna", "a complaint")
    looks = iter((False, True))
    with pytest.raises(Interrupted):
        count_hidden(archive, select(archive, Asked()), lambda: next(looks))


def test_people_are_told_on_stderr_and_the_code_stays(archive: Archive, tmp_path: Path) -> None:
    rule = access_rules.withhold(archive, f"http://{DOMAIN}/mayor.html", "anna", "a complaint of Mr X")[0]
    command = ("export", "--archive", str(archive.root), "--record", _record(0))
    done = webarc(*command, str(tmp_path / "town.warc.gz"))
    said = "included, and hidden from readers: 1 withheld page. --as-reader leaves that out"
    assert (done.returncode, done.stderr) == (0, f"webarc: {said}\n") and "Mr X" not in done.stdout
    done = webarc(*command, "--as-reader", str(tmp_path / "public.warc.gz"))
    assert (done.returncode, done.stderr) == (0, "")
    access_rules.lift(archive, rule.id, "anna")
    done = webarc("export", "--archive", str(archive.root), str(tmp_path / "all"))
    assert "hidden from readers: 2 snapshots of 1 host, not released or under embargo. --as-reader" in done.stderr
    archive.access_rules.write_text("no rule")
    done = webarc("export", "--archive", str(archive.root), str(tmp_path / "again"))
    assert done.returncode == 0 and "what of it readers do not see is not known" in done.stderr


def _ids(texts: list[bytes]) -> list[str]:
    return sorted(str(etree.fromstring(text).get("id")) for text in texts)


def test_the_descriptions_of_the_crawls_come_with_the_files(archive: Archive, tmp_path: Path) -> None:
    """In a folder, a bag and a WACZ, which stay valid, and of which the same snapshots are made again."""
    written = {form: tmp_path / name for form, name in (("warc", "folder"), ("bagit", "bag"), ("wacz", "x.wacz"))}
    for form, out in written.items():
        done = webarc("export", "--archive", str(archive.root), "--format", form, "--with-records", "--json", str(out))
        assert done.returncode == 0, done.stderr
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) or out.stat().st_size
        assert json.loads(done.stdout)["bytes"] == size, form
    with zipfile.ZipFile(io.BytesIO(written["wacz"].read_bytes())) as package:
        packed = [package.read(name) for name in package.namelist() if name.startswith("records/")]
        resources = [part["path"] for part in json.loads(package.read("datapackage.json"))["resources"]]
    folders = written["warc"] / "records", written["bagit"] / "metadata" / "records"
    texts = [[file.read_bytes() for file in folder.iterdir()] for folder in folders]
    expected = sorted(map(_record, range(3)))
    assert [_ids(contents) for contents in (*texts, packed)] == [expected] * 3
    assert sum(path.startswith("records/") for path in resources) == 3
    for command in ([_BIN / "bagit.py", "--validate", "--quiet", written["bagit"]],
                    [_BIN / "wacz", "validate", "-f", written["wacz"]]):  # fmt: skip
        assert subprocess.run(command, check=False, capture_output=True).returncode == 0, command
    for form, out in written.items():
        again = directory.create(tmp_path / f"again-{form}")
        exportedjob.run(again, [out])
        assert list(again.domains()) == [DOMAIN], form


def test_readers_get_the_descriptions_that_they_may_see(archive: Archive, tmp_path: Path) -> None:
    out = tmp_path / "folder"
    done = webarc("export", "--archive", str(archive.root), "--as-reader", "--with-records", str(out))
    assert done.returncode == 0, done.stderr
    assert [file.name for file in (out / "records").iterdir()] == [f"{_record(0)}.xml"]


@pytest.mark.parametrize("words", [["x.warc.gz"], ["-"], ["--format", "cdxj", "x"], ["--format", "static", "x"]])
def test_records_need_a_place(archive: Archive, tmp_path: Path, words: list[str]) -> None:
    *options, out = words
    out = out if out == "-" else str(tmp_path / out)
    done = webarc("export", "--archive", str(archive.root), "--with-records", *options, out)
    assert done.returncode != 0 and "--with-records needs a place for them" in done.stderr
    assert not (tmp_path / "x").exists()


def test_the_command_of_the_readme_hands_one_crawl_over(archive: Archive, tmp_path: Path) -> None:
    (command,) = OF_RECORD
    archive.root.rename(tmp_path / "webarc")
    in_shell(command.replace("--record 17", "--record 1"), tmp_path, HOME=str(tmp_path))
    with zipfile.ZipFile(tmp_path / "handed-over.wacz") as package:
        assert sum(name.startswith("records/") for name in package.namelist()) == 1
