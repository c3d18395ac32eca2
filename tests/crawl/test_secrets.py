"""What single hosts are shown, logins, header fields and cookies, nobody else gets, and no file of the archive has."""

from __future__ import annotations

import base64
import contextlib
import gzip
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import crawls
from tests.support.crawls import secret_file
from tests.support.messy_sites import FINE
from tests.support.site import Site
from tests.support.wire import Exchange, page, redirect
from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import CrawlFailed

pytestmark = pytest.mark.crawl


def test_secrets_go_to_their_hosts_alone(archive: Archive, tmp_path: Path) -> None:
    """S-secret-1: not to others by links, resources or redirects; nothing of the archive has them afterwards."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    words = ("pa55word", "t0ken", "c00kie")
    seen: list[str] = []

    def home(exchange: Exchange) -> None:
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                seen.append(process.read_text(errors="replace"))
        page("<a href=/a>a</a><a href=/r>r</a><img src=http://b.test/x.png><a href=http://sub.a.test/>s</a>")(exchange)

    with Site() as site:
        site.add_nasty("/", home, "a.test")
        site.add_nasty("/a", page(FINE), "a.test")
        site.add_nasty("/r", redirect("http://b.test/r"), "a.test")
        for path in ("/x.png", "/r"):
            site.add_nasty(path, page(FINE), "b.test")
        site.add_nasty("/", page(FINE), "sub.a.test")
        outcome = crawls.crawl(
            archive,
            "http://a.test/",
            hosts=["*.test"],
            keep_warc=True,
            wget_args=crawls.through(site.proxy),
            login=[secret_file(folder, "me:pa55word\n", "http://a.test")],
            headers=[secret_file(folder, "# for us\nX-Key: t0ken\n", "http://a.test")],
            cookies=[secret_file(folder, "sid=c00kie\n", "http://a.test"), secret_file(folder, "n=c00kie", "a.test")],
        )
        asked = {(request.host, request.path): request.headers for request in site.requests}
    basic = base64.b64encode(b"me:pa55word").decode()
    for path in ("/", "/a", "/r", "/robots.txt"):
        fields = asked["a.test", path]
        assert (fields["authorization"], fields["x-key"]) == (f"Basic {basic}", "t0ken")
        assert fields["cookie"] == "sid=c00kie", "what is for https alone is not sent by http"
    others = [fields for (host, _), fields in asked.items() if host != "a.test"]
    assert len(others) >= 4 and not any({"authorization", "x-key", "cookie"} & fields.keys() for fields in others)
    assert any("wget" in line for line in seen)
    contents = dict(_contents(archive))
    assert any(FINE.encode() in content for name, content in contents.items() if name.endswith("objects"))
    for hidden in (*words, basic):
        assert not any(hidden in line for line in seen), "a process list has it"
        assert [name for name, content in contents.items() if hidden.encode() in content] == []
    warcs = [content for name, content in contents.items() if ".warc" in name]
    assert outcome.complete and warcs and any(b"Authorization: ***" in content for content in warcs)


def test_the_password_of_a_proxy_stays_with_it(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    basic = base64.b64encode(b"me:pa55word").decode()
    with Site() as site:
        site.add("/", FINE, host="a.test")
        monkeypatch.setenv("http_proxy", f"http://me:pa55word@{site.host}/")
        monkeypatch.delenv("no_proxy", raising=False)
        assert crawls.crawl(archive, "http://a.test/", keep_warc=True).complete
        assert all(request.headers["proxy-authorization"] == f"Basic {basic}" for request in site.requests)
    contents = dict(_contents(archive))
    for hidden in ("pa55word", basic):
        assert [name for name, content in contents.items() if hidden.encode() in content] == []
    assert any(b"Proxy-Authorization: ***" in content for name, content in contents.items() if ".warc" in name)


def _contents(archive: Archive) -> Iterator[tuple[str, bytes]]:
    """All files of an archive by name, unpacked, and all objects of each repository as one."""
    for path in archive.root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield str(path), gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        elif path.name == "objects":
            command = ["git", "-C", str(path.parent), "cat-file", "--batch-all-objects", "--batch"]
            yield str(path), subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.parametrize(
    ("kind", "text", "mode", "why"),
    [
        ("login", "me:t0ken", 0o644, "others may read it"),
        ("login", "me:t0ken", 0o640, "others may read it"),
        ("login", "t0ken", 0o600, "user:password"),
        ("headers", "X-Key t0ken", 0o600, "Name: value"),
        ("headers", "Host: t0ken.test", 0o600, "may be set"),
        ("headers", "X-Key: t0ken\x0bt0ken", 0o600, "Name: value"),
        ("cookies", "", 0o600, "cookies.txt"),
        ("cookies", "t=t0ken\n" * 200_000, 0o600, "more than 1 MiB"),
        ("cookies", "other.test\tTRUE\t/\tFALSE\t0\ta\tt0ken", 0o600, "cookies.txt"),
    ],
)
def test_files_that_will_not_do(  # noqa: PLR0917  a table of cases
    archive: Archive, tmp_path: Path, kind: str, text: str, mode: int, why: str
) -> None:
    """The message names the file and not what is in it."""
    secret = secret_file(tmp_path, text, "http://a.test", mode=mode)
    with pytest.raises(CrawlFailed, match=why) as raised:
        crawls.crawl(archive, "http://a.test/", **{kind: [secret]})
    assert secret.file in str(raised.value) and "t0ken" not in str(raised.value)


@pytest.mark.parametrize("host", ["*", "*.a.test", "http://a.test/x", "ftp://a.test", "", "a test"])
def test_hosts_are_named(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        validators.origin(host)


def test_a_publication_with_a_secret_is_released_by_hand() -> None:
    """Unless it says otherwise."""
    text = '[[publication]]\nname = "{name}"\nurls = ["https://a.test/"]\n{more}\n'
    table = '[[publication.login]]\nhosts = ["a.test"]\nfile = "/etc/secret"'
    texts = ((("p", table)), ("q", f'release = "automatic"\n{table}'), ("r", ""))
    settings = settings_files.parse("".join(text.format(name=name, more=more) for name, more in texts), "test")
    assert [publication.release for publication in settings.publications] == ["by-hand", "automatic", "automatic"]
