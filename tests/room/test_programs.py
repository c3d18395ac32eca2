"""Programs that were made for the Wayback Machine and for Memento work on the room as it is set up by default.

Replay has an origin of its own there. Nothing of the programs is changed. cdx_toolkit and memento_client are
told where to ask; the others have `HOSTS` in their code, and what they send there goes to the room.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests
import waybackpack.cli  # type: ignore[import-untyped]
from memento_client import MementoClient  # type: ignore[import-untyped]
from requests.adapters import HTTPAdapter
from warcio.archiveiterator import ArchiveIterator
from wayback import Mode, WaybackClient, WaybackSession  # type: ignore[import-untyped]
from waybackpy import WaybackMachineAvailabilityAPI, WaybackMachineCDXServerAPI  # type: ignore[import-untyped]

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.readercommand import webarc
from tests.support.rooms import Answer, Page, Served, digits, published, served
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET
from webarcfs.export.warc_records import SMALL

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME, OLD, IMAGE, STYLE, PRINT = (f"http://{DOMAIN}/{name}" for name in ("", "old", "a.png", "s.css", "print.pdf"))
FIRST = datetime(2020, 1, 1, 12, tzinfo=CET)
TIMES = [FIRST + timedelta(days=10 * each) for each in range(5)]
#: The version of the home page in each snapshot; the third has that of the second.
BODIES = [f"<title>Home</title><img src=a.png> {name}".encode() for name in ("one", "two", "two", "three", "one")]
#: The snapshots that have a new one.
CHANGED = (0, 1, 3, 4)
PNG, CSS, PDF = b"\x89PNG bytes", b"p { color: red }", b"%PDF-1.4" + bytes(SMALL)
#: Where programs without an address of their own ask.
HOSTS = re.compile(r"https?://(?:web\.)?archive\.org")
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
#: What a browser says that trusts the address: a window, an image in a page.
WINDOW = {"User-Agent": BROWSER, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
PART = {"User-Agent": BROWSER, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "cross-site"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("programs"))
    for number, when in enumerate(TIMES):
        pages: dict[str, Page | None] = {HOME: Page(BODIES[number])} if number in CHANGED else {}
        if number == 0:
            pages |= {IMAGE: Page(PNG, "image/png"), STYLE: Page(CSS, "text/css"), PRINT: Page(PDF, "application/pdf")}
        published(made, DOMAIN, pages, when, redirects={OLD: HOME} if number == 0 else None)
    recover(made)
    return made


@pytest.fixture(scope="module")
def room(archive: Archive) -> Iterator[Served]:
    with served(archive, two_origins=True) as found:
        yield found


@pytest.fixture
def elsewhere(room: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send to the room what is meant for the Internet Archive; the program sees what it asked."""
    send = HTTPAdapter.send

    def sent(self: HTTPAdapter, request: requests.PreparedRequest, **options: object) -> requests.Response:
        asked = request.url or ""
        copy = request.copy()
        copy.url = HOSTS.sub(room.origin, asked)
        response = send(self, copy, **options)  # type: ignore[arg-type]
        response.url, response.request = asked, request
        return response

    monkeypatch.setattr(HTTPAdapter, "send", sent)


def sha1(body: bytes) -> str:
    """The digest of a body in the form of the field."""
    return base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


# -- the room's own port -----------------------------------------------------------------------------------------------


def is_file(answer: Answer) -> bool:
    """Whether no browser shows an answer, whatever it is: it is a download, in a sandbox without scripts."""
    policy = answer.headers["content-security-policy"]
    sandbox = policy.split(";")[0]
    return (
        answer.headers["content-disposition"] == "attachment"
        and sandbox == "sandbox"
        and "default-src 'none'" in policy
        and answer.headers["x-content-type-options"] == "nosniff"
    )


@pytest.mark.parametrize("modifier", ["id_", "mp_", "if_", "im_", "js_", "cs_", "oe_", "fr_"])
@pytest.mark.parametrize(("url", "body"), [(IMAGE, PNG), (STYLE, CSS), (PRINT, PDF)])
def test_a_program_gets_what_is_archived_from_the_room(room: Served, modifier: str, url: str, body: bytes) -> None:
    answer = room.get(f"/web/{digits(TIMES[0])}{modifier}/{url}", {"User-Agent": "curl/8"})
    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["memento-datetime"]
    assert is_file(answer)


def test_a_page_for_a_program_leads_on_in_the_room(room: Served) -> None:
    answer = room.get(f"/web/{digits(TIMES[0])}mp_/{HOME}", {"User-Agent": "curl/8"})
    assert f"src=/web/{digits(TIMES[0])}im_/{IMAGE}".encode() in answer.body
    assert is_file(answer)
    assert room.get(f"/web/{digits(TIMES[0])}id_/{HOME}").body == BODIES[0]
    redirect = room.get(f"/web/{digits(TIMES[0])}id_/{OLD}")
    assert (redirect.status, redirect.headers["location"]) == (301, f"/web/{digits(TIMES[0])}id_/{HOME}")


@pytest.mark.parametrize("asked", [WINDOW, PART])
@pytest.mark.parametrize("modifier", ["id_", "mp_", "if_", "im_", "js_"])
def test_a_browser_gets_nothing_archived_from_the_room(room: Served, asked: dict[str, str], modifier: str) -> None:
    place = f"/web/{digits(TIMES[0])}{modifier}/{IMAGE}"
    answer = room.get(place, asked)
    assert (answer.status, answer.body) == (302, b"")
    assert answer.headers["location"] == f"http://127.0.0.1:{room.replay_port}{place}"
    assert room.get(f"/web/{digits(TIMES[0])}id_/{IMAGE}", {**asked, "Service-Worker": "script"}).status in (302, 403)


def test_a_browser_that_does_not_say_what_for_gets_pages_from_replay_and_bytes_as_a_download(room: Served) -> None:
    asked = {"User-Agent": BROWSER}  # as over http, on a network
    assert room.get(f"/web/{digits(TIMES[0])}mp_/{HOME}", asked).status == 302
    sent = room.get(f"/web/{digits(TIMES[0])}id_/{HOME}", asked)
    assert sent.body == BODIES[0]
    assert is_file(sent)


def test_a_service_worker_is_no_program(room: Served) -> None:
    asked = {"User-Agent": "curl/8", "Service-Worker": "script"}
    assert room.get(f"/web/{digits(TIMES[0])}id_/{IMAGE}", asked).status == 403


def test_a_timegate_leads_a_program_to_the_room_and_a_browser_to_replay(room: Served) -> None:
    asked = {"Accept-Datetime": "Thu, 02 Jan 2020 12:00:00 GMT"}
    place = f"/web/{digits(TIMES[0])}mp_/{HOME}"
    assert room.get(f"/web/{HOME}", asked).headers["location"] == place
    shown = room.get(f"/web/{HOME}", asked | {"User-Agent": BROWSER}).headers["location"]
    assert shown == f"http://127.0.0.1:{room.replay_port}{place}"


# -- programs ----------------------------------------------------------------------------------------------------------


def test_memento_client(room: Served) -> None:
    client = MementoClient(timegate_uri=f"{room.origin}/web/", check_native_timegate=False)
    asked = f"{room.origin}/web/{digits(TIMES[3])}mp_/{HOME}"  # so that it asks nothing but the room
    told = client.get_memento_info(asked, TIMES[1].astimezone(UTC).replace(tzinfo=None) + timedelta(hours=2))
    assert told["original_uri"] == HOME
    closest = told["mementos"]["closest"]
    assert closest["uri"] == [f"{room.origin}/web/{digits(TIMES[1])}mp_/{HOME}"]
    assert closest["datetime"] == TIMES[1].astimezone(UTC).replace(tzinfo=None)
    assert closest["http_status_code"] == 200


@pytest.mark.usefixtures("elsewhere")
def test_waybackpy() -> None:
    server = WaybackMachineCDXServerAPI(HOME, user_agent="test", start_timestamp="2020", end_timestamp="2021")
    found = list(server.snapshots())
    assert [each.timestamp for each in found] == [digits(TIMES[each]) for each in CHANGED]
    assert {each.original for each in found} == {HOME}
    by_page = WaybackMachineCDXServerAPI(f"{DOMAIN}/*", user_agent="test", use_pagination=True)
    assert {each.original for each in by_page.snapshots()} == {HOME, OLD, IMAGE, STYLE, PRINT}
    near = WaybackMachineCDXServerAPI(HOME, user_agent="test").near(year=2020, month=1, day=20)
    assert near.timestamp == digits(TIMES[1])
    available = WaybackMachineAvailabilityAPI(HOME, "test")
    assert digits(TIMES[4]) in available.newest().archive_url


@pytest.mark.usefixtures("elsewhere")
def test_wayback_of_edgi() -> None:
    session = WaybackSession(search_calls_per_second=0, memento_calls_per_second=0, retries=0)
    with WaybackClient(session) as client:
        found = list(client.search(HOME, match_type="exact"))
        assert [each.timestamp.strftime("%Y%m%d%H%M%S") for each in found] == [digits(TIMES[each]) for each in CHANGED]
        for number, record in zip(CHANGED, found, strict=True):
            memento = client.get_memento(record)
            assert (memento.ok, memento.content, memento.url) == (True, BODIES[number], HOME)
            assert memento.timestamp == record.timestamp
            assert record.digest == sha1(memento.content)
        image = client.get_memento(IMAGE, timestamp=TIMES[0], mode=Mode.image)
        assert image.content == PNG
        followed = client.get_memento(OLD, timestamp=TIMES[0])
        assert (followed.url, followed.content) == (HOME, BODIES[0])
        assert [each.url for each in followed.history] == [OLD]


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ([], CHANGED),
        (["--uniques-only"], CHANGED[:-1]),  # the last one is as the first
        (["--collapse", "timestamp:6"], (0, 4)),
        (["--from-date", "202001", "--to-date", "202001"], (0, 1, 3)),
    ],
)
def test_waybackpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], wanted: tuple[int, ...]) -> None:
    options = [*more, "--raw", "--quiet", "--max-retries", "0", "--delay-retry", "0"]
    monkeypatch.setattr(sys, "argv", ["waybackpack", HOME, "-d", str(tmp_path), *options])
    waybackpack.cli.main()
    files = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {Path(digits(TIMES[each]), DOMAIN, "index.html"): BODIES[each] for each in wanted}


def cdxt(room: Served, *words: str) -> str:
    """Run cdx_toolkit's command on the room."""
    told = ["--source", f"{room.origin}/cdx", "--wb", f"{room.origin}/web"]
    command = [str(Path(sys.executable).with_name("cdxt")), *told, *words]
    environment = os.environ | {"CDXT_DEFAULT_MIN_RETRY_INTERVAL": "0", "CDXT_MAX_ERRORS": "0"}
    ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_cdx_toolkit(room: Served, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in cdxt(room, "iter", "--jsonl", HOME).splitlines()]
    assert rows == [{"url": HOME, "status": "200", "timestamp": digits(TIMES[each])} for each in CHANGED]
    assert len(cdxt(room, "--limit", "2", "iter", HOME).splitlines()) == 2
    assert cdxt(room, "iter", f"http://{DOMAIN}/nothing") == ""
    assert OLD in cdxt(room, "--filter", "=status:301", "iter", f"{DOMAIN}/*")
    assert int(cdxt(room, "size", HOME)) > 0
    cdxt(room, "warc", "--prefix", str(tmp_path / "X"), f"{DOMAIN}/*")
    (file,) = tmp_path.iterdir()
    with file.open("rb") as stream:
        bodies = [
            (each.rec_headers["WARC-Target-URI"], each.content_stream().read()) for each in ArchiveIterator(stream)
        ]
    site = [*((HOME, BODIES[each]) for each in CHANGED), (IMAGE, PNG), (OLD, b""), (PRINT, PDF), (STYLE, CSS)]
    assert bodies[1:] == site


def test_requests_as_gau_waymore_and_readers_of_pywb_send_them(room: Served) -> None:
    site = f"url=*.{DOMAIN}/*"
    gau = f"/cdx/search/cdx?{site}&output=json&collapse=urlkey&fl=original&pageSize=100"
    assert room.get(f"{gau}&showNumPages=true").text == "1\n"
    found = json.loads(room.get(f"{gau}&page=0").text)
    assert found[0] == ["original"] and {url for (url,) in found[1:]} == {HOME, OLD, IMAGE, STYLE, PRINT}
    waymore = f"/cdx/search/cdx?{site}&collapse=timestamp:8&fl=timestamp,original,mimetype,statuscode,digest"
    left_out = "&filter=!mimetype:text/css%7Cimage/png&filter=!statuscode:404%7C301&page="
    assert room.get(f"{waymore}{left_out}&showNumPages=True").text == "1\n"
    lines = room.get(f"{waymore}{left_out}0").text.splitlines()
    assert {line.split(" ")[1] for line in lines} == {HOME, PRINT}
    pywb = f"/cdx?{site}&fields=url,timestamp,status,mime&filter=%3Dstatus:301&output=cdxj&resolveRevisits=true"
    assert json.loads(room.get(pywb).text.split(" ", 2)[2])["url"] == OLD


def test_a_digest_is_that_of_the_bytes_that_are_sent_and_that_of_exports(
    archive: Archive, room: Served, tmp_path: Path
) -> None:
    told = [line.split(" ") for line in room.get(f"/cdx?url={DOMAIN}/*").text.splitlines()]
    assert len(told) == len(CHANGED) + 4
    for _, when, url, _, _, digest, _ in told:
        assert digest == sha1(room.get(f"/web/{when}id_/{url}").body)
    out = tmp_path / "out.cdxj"
    assert webarc("export", "--archive", str(archive.root), "--format", "cdxj", str(out)).returncode == 0
    known = {(when, fields["url"]): fields["digest"] for when, fields in map(_cdxj, out.read_text().splitlines())}
    for when, fields in map(_cdxj, room.get(f"/cdx?url={DOMAIN}/*&output=cdxj").text.splitlines()):
        assert known[when, fields["url"]] == fields["digest"]


def _cdxj(line: str) -> tuple[str, dict[str, str]]:
    _, when, fields = line.split(" ", 2)
    return when, json.loads(fields)
