"""CDXJ of an export: what the field's indexer says of the same files, and what pywb finds with it."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import archives
from tests.support.histories import History, Step
from tests.support.readercommand import webarc, webarc_bytes
from tests.support.recorded import published
from tests.support.waiting import until
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.url_lists import Redirect, place_of, write_list
from webarcfs.archive.model.urls import canonical
from webarcfs.export.cdxj import cdx_key

pytestmark = pytest.mark.store

_TOOLS = Path(__file__).parents[2] / ".venv-pywb" / "bin"
_SESSION = "0123456789abcdef0123456789abcdef"
#: URLs and their keys.
KEYS = {
    "http://www.example.org/": "org,example)/",
    "http://www2.Example.org:8080/A/B/": "org,example:8080)/a/b",
    "https://e.org:80/x": "org,e:80)/x",
    "http://www.www.example.org/": "org,example,www)/",
    "http://127.0.0.1:81/x": "1,0,0,127:81)/x",
    "http://[2001:db8::1]:81/x": "2001:db8::1:81)/x",
    "http://e.org/a//b/?": "org,e)/a/b",
    "http://e.org/a%20b?x=%41&B=2&a=1": "org,e)/a%20b?a=1&b=2&x=a",
    "http://e.org/caf%C3%A9%2525": "org,e)/caf%c3%a9%25",
    f"http://e.org/x?PHPSESSID={_SESSION}&z": "org,e)/x?z",
    "http://e.org/a/(S(4hqa0555fwsecu455xqckv45))/b.aspx": "org,e)/a/b.aspx",
    "http://e.org/x?cfid=1234&cftoken=123": "org,e)/x",
    "http://e.org/%2E%2E/b": "org,e)/../b",
}
_BITS = (
    *"aB/?&=+~!|<\"'():@,*$;.", "//", "..", "%20", "%41", "%2F", "%25", "%2525", "%23", "%3F", "x=1", "a-b=1", "b=2",
    "%C3%A9", "%E9", "%00", "%7F", "index.html", "/x.aspx", f"jsessionid={_SESSION}", f"&sid={_SESSION}",
    f"&phpsessid={_SESSION}", "cfid=1&cftoken=2", "(S(4hqa0555fwsecu455xqckv45))",
)  # fmt: skip
_HOSTS = ("e.org", "www.e.org", "www2.e.org:8080", "w-ww.e.org", "127.0.0.1", "[::1]:81", "www.org", "localhost")


@pytest.fixture(scope="module")
def tools() -> Path:
    """Programs of others (GPL among them), in an environment of their own."""
    if not (_TOOLS / "cdxj-indexer").exists():
        pytest.skip("needs `make pywb`")
    return _TOOLS


@pytest.mark.parametrize("url", KEYS)
def test_a_key_is_that_of_the_field(url: str) -> None:
    assert cdx_key(url) == KEYS[url]


def test_keys_are_those_of_another_program(tools: Path) -> None:
    asked: dict[str, str] = {}

    @settings(max_examples=400, deadline=None)
    @given(st.sampled_from(("http", "https")), st.sampled_from(_HOSTS), st.lists(st.sampled_from(_BITS), max_size=7))
    def collect(scheme: str, host: str, bits: list[str]) -> None:
        try:
            url = canonical(f"{scheme}://{host}/{''.join(bits)}")
        except UrlRefused:
            return
        asked[url] = cdx_key(url)

    collect()
    asked |= KEYS
    script = "import json, sys\nfrom surt import surt\nprint(json.dumps([surt(url) for url in json.load(sys.stdin)]))"
    told = subprocess.run(
        [tools / "python", "-c", script], input=json.dumps(list(asked)), capture_output=True, text=True, check=True
    )
    pairs = zip(asked.items(), json.loads(told.stdout), strict=True)
    wrong = {url: (key, other) for (url, key), other in pairs if key != other}
    assert wrong == {} and len(asked) > 300


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Versions, an addition, a redirect, and a page that is no HTML."""
    made = directory.create(tmp_path_factory.mktemp("cdxj") / "archive")
    steps = (Step("p", {"a": "1", "b": "<p>first</p>", "b/c": "x"}), Step("p", {"a": "1", "b": "<p>second</p>"}))
    tags = published(made, History(steps))
    archives.add(made, "b/notes.txt", b"hello")
    line = Redirect("http://e.org/old", 302, "http://e.org/x.pdf", tags[0].crawl_time)
    archives.publish(made, "e.org", {"x.pdf": b"%PDF"}, extra={place_of(line.url): write_list([line])})
    archives.publish(made, "e.org", {"y.html": b"y"})
    return made


@pytest.fixture(scope="module")
def exported(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its export, with the index beside it."""
    out = tmp_path_factory.mktemp("exported") / "out"
    for words in ((), ("--format", "cdxj")):
        done = webarc("export", "--archive", str(archive.root), *words, str(out))
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return out


def test_the_index_is_that_of_the_fields_indexer(tools: Path, exported: Path) -> None:
    (path,) = exported.glob("*.warc.gz")
    theirs = subprocess.run(
        [tools / "cdxj-indexer", "--sort", "--records", "response,revisit", path],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in theirs.stdout.splitlines() if not line.startswith("urn:")]
    ours = (exported / "index.cdxj").read_text("ascii").splitlines()
    assert ours == lines and len(ours) == 7
    assert sorted(line.encode() for line in ours) == [line.encode() for line in ours]


def test_an_index_by_itself_says_the_same_but_for_the_places(archive: Archive, exported: Path, tmp_path: Path) -> None:
    alone = webarc("export", "--archive", str(archive.root), "--format", "cdxj", str(tmp_path / "x.cdxj"))
    assert (alone.returncode, alone.stderr) == (0, ""), alone.stderr
    stripped = []
    for line in (exported / "index.cdxj").read_text("ascii").splitlines():
        key, digits, told = line.split(" ", 2)
        kept = {name: text for name, text in json.loads(told).items() if name not in ("length", "offset", "filename")}
        stripped.append(f"{key} {digits} {json.dumps(kept)}")
    assert (tmp_path / "x.cdxj").read_text("ascii").splitlines() == stripped
    stream = webarc_bytes("export", "--archive", archive.root, "--format", "cdxj", "-")
    assert stream.stdout == (tmp_path / "x.cdxj").read_bytes()


def test_an_index_is_of_the_files_beside_it_only(archive: Archive, exported: Path, tmp_path: Path) -> None:
    words = ("export", "--archive", str(archive.root))
    again = webarc(*words, "--format", "cdxj", str(exported))
    assert again.returncode == 2 and "is there already" in again.stderr
    assert webarc(*words, "--at", "2021-01-01", str(tmp_path / "out")).returncode == 0
    other = webarc(*words, "--format", "cdxj", str(tmp_path / "out"))
    assert other.returncode == 2 and not (tmp_path / "out" / "index.cdxj").exists()
    assert "of something else" in other.stderr or "other snapshots" in other.stderr
    (path,) = (tmp_path / "out").glob("*.warc.gz")
    path.write_bytes(path.read_bytes()[:-10])
    cut = webarc(*words, "--at", "2021-01-01", "--format", "cdxj", str(tmp_path / "out"))
    assert cut.returncode == 2 and "cut off" in cut.stderr


@pytest.fixture
def replay(tools: Path, exported: Path, tmp_path: Path) -> Iterator[str]:
    """pywb on the export: its collection takes the files and indexes them; returns where it answers."""
    (path,) = exported.glob("*.warc.gz")
    subprocess.run([tools / "wb-manager", "init", "x"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([tools / "wb-manager", "add", "x", path], cwd=tmp_path, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [tools / "wayback", "--port", str(port), "--bind", "127.0.0.1"], cwd=tmp_path, stdout=log, stderr=log
        )
    try:
        until(lambda: _answers(port), "pywb answers")
        yield f"http://127.0.0.1:{port}/x"
    finally:
        process.terminate()
        process.wait(120)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _get(url: str) -> tuple[int, str, bytes]:
    opener = urllib.request.build_opener(_Stay)
    try:
        with opener.open(url, timeout=120) as answer:
            return answer.status, answer.headers.get("Location", ""), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Location", ""), error.read()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def test_pywb_replays_it(replay: str) -> None:
    assert _get(f"{replay}/20191231230000id_/http://www.example.org/b")[2] == b"<p>first</p>"
    assert _get(f"{replay}/20200101230000id_/http://www.example.org/b")[2] == b"<p>second</p>"
    assert _get(f"{replay}/20200101230000id_/http://www.example.org/a")[2] == b"1"  # by a revisit
    assert _get(f"{replay}/2026id_/http://e.org/x.pdf")[2] == b"%PDF"
    status, location, _ = _get(f"{replay}/2019id_/http://e.org/old")
    assert status == 302 and location.endswith("http://e.org/x.pdf")
    assert _get(f"{replay}/2026id_/http://e.org/never")[0] == 404
