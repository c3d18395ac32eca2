"""A gateway and a mount of one archive, which add at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import archives, gateways
from tests.support.archives import DOMAIN
from tests.support.gateways import ServedGateway, place
from tests.support.mounts import Mounted
from tests.support.waiting import until
from webarcfs.archive.additions.waiting_additions import read_waiting
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.mount

PAGE = "p0.html"
#: Writers of each kind, and the names that all of them want.
WRITERS, NAMES = 8, 40


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = archives.final_at_once(archives.make_archive(tmp_path))
    archives.publish(made, DOMAIN, {PAGE: b"0"})
    gateways.with_persons(made)
    return made


@pytest.fixture
def tag(archive: Archive) -> CommitTag:
    head = archives.store_of(archive).head()
    assert head is not None
    return head.message.tag


@pytest.fixture
def served(archive: Archive) -> Iterator[ServedGateway]:
    with gateways.served(archive) as gateway:
        yield gateway


@pytest.fixture
def mounted(archive: Archive, served: ServedGateway, tmp_path: Path) -> Iterator[Mounted]:  # noqa: ARG001 # both at once
    mount = Mounted(archive.root, tmp_path / "mnt")
    yield mount
    mount.clear()


def test_of_equal_names_one_is_kept_whoever_writes_it(
    archive: Archive, served: ServedGateway, mounted: Mounted, tag: CommitTag
) -> None:
    """S-gateway-6: sixteen writers, eight of each kind; the bytes are those of whoever was told that they are kept."""
    secret = gateways.token(archive, "carl", Scope.READ, Scope.ADD)
    kept: dict[str, list[bytes]] = {f"n{number}": [] for number in range(NAMES)}
    turn = threading.Barrier(2 * WRITERS)

    def by_gateway(name: str, body: bytes) -> bool:
        answer = served.program(secret).put(tag, PAGE, name, body)
        assert answer.status in (201, 412), answer.body
        return answer.status == 201

    def by_mount(name: str, body: bytes) -> bool:
        try:
            with (mounted / f"{DOMAIN}/{PAGE}/{name}").open("xb") as file:
                file.write(body)
        except FileExistsError:
            return False
        return True

    def write(writer: int, add: Callable[[str, bytes], bool]) -> None:
        turn.wait()
        for number in range(NAMES):
            name = f"n{number}"
            body = f"{name} of {writer}\n".encode() * 500
            if add(name, body):
                kept[name].append(body)

    ways = [by_gateway, by_mount] * WRITERS
    threads = [threading.Thread(target=write, args=(writer, way)) for writer, way in enumerate(ways)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert {name: len(bodies) for name, bodies in kept.items()} == dict.fromkeys(kept, 1)
    store = archives.store_of(archive)

    def committed() -> dict[str, bytes]:
        head = store.head()
        assert head is not None
        folder = store.find(head.tree, PAGE)
        assert folder is not None
        return {entry.name: store.read(entry.oid) for entry in store.entries(folder.oid) if entry.name in kept}

    until(lambda: committed().keys() == kept.keys())
    assert committed() == {name: bodies[0] for name, bodies in kept.items()}
    until(lambda: read_waiting(archive) == {})
    # Each shows the other's as soon as it has looked at git again.
    until(lambda: kept.keys() <= {path.name for path in (mounted / f"{DOMAIN}/{PAGE}").iterdir()})
    until(lambda: all(served.program(secret).get(place(tag, PAGE, name)).status == 200 for name in kept))
    for name, (body,) in kept.items():
        assert served.program(secret).get(place(tag, PAGE, name)).body == body
        assert (mounted / f"{DOMAIN}/{PAGE}/{name}").read_bytes() == body


def test_a_mount_shows_what_a_gateway_added(
    archive: Archive, served: ServedGateway, mounted: Mounted, tag: CommitTag
) -> None:
    """And the gateway what was written through the mount."""
    carl = served.program(gateways.token(archive, "carl", Scope.READ, Scope.ADD))
    assert carl.put(tag, PAGE, "more/theirs", b"theirs").status == 201
    own = mounted / f"{DOMAIN}/{PAGE}"
    until((own / "more/theirs").exists)
    assert (own / "more/theirs").read_bytes() == b"theirs"
    (own / "ours").write_bytes(b"ours")
    until(lambda: carl.get(place(tag, PAGE, "ours")).status == 200)
    assert carl.get(place(tag, PAGE, "ours")).body == b"ours"
