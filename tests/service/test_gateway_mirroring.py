"""What mirrors get of a gateway: blobs, and git repositories that can be fetched from, and not pushed to."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import archives, gateways
from tests.support.archives import DOMAIN
from tests.support.gateways import Program, ServedGateway
from webarcfs.api.routes import PREFIX
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.system.files import blob_id

pytestmark = pytest.mark.store

BODY = os.urandom(3_000_000)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = archives.make_archive(tmp_path)
    archives.publish(made, DOMAIN, {"p0.html": b"0", "large.bin": BODY})
    gateways.with_persons(made)
    return made


@pytest.fixture
def served(archive: Archive) -> Iterator[ServedGateway]:
    with gateways.served(archive) as gateway:
        yield gateway


@pytest.fixture
def adam(archive: Archive, served: ServedGateway) -> Program:
    return served.program(gateways.token(archive, "adam", Scope.READ, Scope.MIRROR))


def _git(program: Program, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    header = f"http.extraHeader=Authorization: Bearer {program.token}"
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    return subprocess.run(
        ["git", "-c", header, *words], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )


def _url(program: Program, domain: str = DOMAIN) -> str:
    return f"http://127.0.0.1:{program.port}{PREFIX}/git/{domain}.git"


def _head(repository: Path) -> str:
    head = Repository(repository).head()
    assert head is not None
    return head.oid


def test_a_blob_is_read_by_its_id(adam: Program, archive: Archive) -> None:
    """S-gateway-7: whole, in parts, and never a tree, a commit, or what is not there."""
    answer = adam.get(f"{PREFIX}/blobs/{DOMAIN}/{blob_id(BODY)}")
    assert (answer.status, answer.body) == (200, BODY) and "immutable" in answer.headers["cache-control"]
    part = adam.get(f"{PREFIX}/blobs/{DOMAIN}/{blob_id(BODY)}", {"Range": "bytes=2999998-"})
    assert (part.status, part.body) == (206, BODY[-2:])
    commit = _head(archive.repository(DOMAIN))
    for domain, oid, status in (
        (DOMAIN, "0" * 40, 404), (DOMAIN, commit, 404), ("none.example", blob_id(BODY), 404), (DOMAIN, "0", 400),
        ("..", blob_id(BODY), 400), ("%2Fetc", blob_id(BODY), 400),
    ):  # fmt: skip
        assert adam.get(f"{PREFIX}/blobs/{domain}/{oid}").status == status, (domain, oid)


@pytest.mark.parametrize("protocol", ["0", "2"])
def test_a_domain_is_cloned_and_fetched(adam: Program, archive: Archive, tmp_path: Path, protocol: str) -> None:
    """S-gateway-7."""
    clone = tmp_path / "clone.git"
    done = _git(
        adam, "-c", f"protocol.version={protocol}", "clone", "--mirror", _url(adam), str(clone), folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert _head(clone) == _head(archive.repository(DOMAIN))
    archives.publish(archive, DOMAIN, {"p0.html": b"1"}, beside_mounts=True)
    assert _git(adam, "-C", str(clone), "fetch", folder=tmp_path).returncode == 0
    assert _head(clone) == _head(archive.repository(DOMAIN))
    refs = subprocess.run(["git", "-C", str(clone), "show-ref"], capture_output=True, text=True, check=True).stdout
    assert "refs/crawls/" in refs and "refs/forms/" not in refs and "refs/publications/" not in refs


def test_a_clone_may_leave_blobs_out(adam: Program, archive: Archive, tmp_path: Path) -> None:
    clone = tmp_path / "partial.git"
    done = _git(adam, "clone", "--mirror", "--filter=blob:limit=1k", _url(adam), str(clone), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        ["git", "-C", str(clone), "cat-file", "--batch-all-objects", "--batch-check"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert blob_id(BODY) not in listed and blob_id(b"0") in listed
    assert _head(clone) == _head(archive.repository(DOMAIN))


def test_nothing_is_pushed(adam: Program, archive: Archive, tmp_path: Path) -> None:
    before = _head(archive.repository(DOMAIN))
    clone = tmp_path / "clone.git"
    assert _git(adam, "clone", "--mirror", _url(adam), str(clone), folder=tmp_path).returncode == 0
    assert _git(adam, "-C", str(clone), "push", "origin", f"{before}:refs/heads/other", folder=tmp_path).returncode
    assert adam.get(f"{PREFIX}/git/{DOMAIN}.git/info/refs?service=git-receive-pack").error == (400, "UsageError")
    assert adam.ask("POST", f"{PREFIX}/git/{DOMAIN}.git/git-receive-pack", b"0000").status == 404
    assert _head(archive.repository(DOMAIN)) == before


def test_fetches_need_the_scope(served: ServedGateway, archive: Archive, tmp_path: Path) -> None:
    carl = served.program(gateways.token(archive, "carl", Scope.READ, Scope.ADD))
    for path in (f"/blobs/{DOMAIN}/{blob_id(BODY)}", f"/git/{DOMAIN}.git/info/refs?service=git-upload-pack"):
        assert carl.get(f"{PREFIX}{path}").error == (403, "Forbidden")
    assert carl.ask("POST", f"{PREFIX}/git/{DOMAIN}.git/git-upload-pack", b"0000").error == (403, "Forbidden")
    assert _git(carl, "clone", "--mirror", _url(carl), "clone.git", folder=tmp_path).returncode


def test_what_is_no_request_of_git_is_refused(adam: Program) -> None:
    place = f"{PREFIX}/git/{DOMAIN}.git/git-upload-pack"
    for body, headers, status in (
        (b"nonsense", {}, 400), (b"not gzip", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(bytes(80 << 20)), {"Content-Encoding": "gzip"}, 413),
    ):  # fmt: skip
        answer = adam.ask("POST", place, body, headers)
        assert answer.status == status and b"/" not in answer.json["detail"].encode(), answer.body
    for domain in ("none.example", "..", "%2e%2e%2f", "a%00b", "-x"):
        answer = adam.get(f"{PREFIX}/git/{domain}.git/info/refs?service=git-upload-pack")
        assert answer.status in (400, 404), (domain, answer.body)
