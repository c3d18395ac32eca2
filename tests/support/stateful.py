"""A real mount and its model, which take the same steps: the frame. The steps are in `tests/mount/test_stateful.py`."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.hands import Hands, digest
from tests.support.model import Draft, Held, Model, Paper
from tests.support.mounts import UMOUNT, Mounted, run
from tests.support.waiting import eventually
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_nodes, data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.system import locks

#: One lies in another, whether that is there or not.
ARCS = ("a.html", "a.html/x.html", "b.html")
NAMES = ("one", "two", "three", "data.txt")
FOLDERS = ("", "", "d/", "d/e/")
NODES = ("n1", "n2", "n3", "n4", "n5", "n6")


class Chance(Protocol):
    """Where decisions come from: a seed, or hypothesis."""

    def choice(self, seq: Any, /) -> Any: ...


@dataclass
class Open:
    """A handle: whose, its descriptor, what the model has for it, and where it writes next.

    It is `spoilt` when a folder came to have its name, which a crawl had made free: through fusepy the kernel has one
    node for a name, and gives up what is open (S-stale-1).
    """

    hands: Hands
    fd: int
    thing: Draft | Paper | Held
    at: int = 0
    spoilt: bool = False
    append: bool = False


@lru_cache(maxsize=len(ARCS))
def nodes_of(document: bytes) -> list[tuple[str, str]]:
    """Name and text of the data nodes of a data.xml, which must be valid. Most looks find the one of the last."""
    data_xml.validate(document)
    return [(node.tag, node.text or "") for node in data_xml.parse_element(document)[1]]


class Run:
    """A real mount and its model, taking the same steps. `names` are those of the steps, as often as in proportion."""

    names: Sequence[str]

    def __init__(self, archive: Archive, binding: str, chance: Chance, *, settles: bool = False) -> None:
        self.archive, self.binding, self.chance = archive, binding, chance
        self.model = Model(settles=settles)
        archive.settings.write_text(f"[mount]\nsettle = {3600 if settles else 0}\n", "utf-8")
        self.hands = [Hands(), Hands()]
        self.open: list[Open] = []
        self.count = 0
        self.told: list[str] = []
        archives.publish(archive, pages=dict.fromkeys(ARCS, b"first"))
        self.model.crawl(dict.fromkeys(ARCS, b"first"))
        self.mounted = self.mount()

    def mount(self) -> Mounted:
        root = self.archive.root
        return Mounted(root, root.parent / "mnt", "-o", f"binding={self.binding}")

    def close(self) -> None:
        for hands in self.hands:
            hands.close()
        self.mounted.clear()

    # -- choices -----------------------------------------------------------------------------------------------------

    def some(self, words: Any) -> Any:
        return self.chance.choice(words)

    def some_path(self) -> str:
        return str(self.some(FOLDERS)) + str(self.some(NAMES))

    def path(self, *words: str) -> str:
        return "/".join([str(self.mounted.point), DOMAIN, *words])

    def data(self) -> str:
        self.count += 1
        return f"{self.count}," * int(self.some((1, 10, 2000, 40000)))

    # -- steps -------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One operation, its answer, and what is shown then."""
        name = self.some(self.names)
        self.told.append(name)
        getattr(self, name)()
        self.check_arc(self.some(ARCS))

    def same(self, what: str, words: tuple[Any, ...], expected: int, hands: Hands | None = None, *also: int) -> Any:
        """Do it, and hold the errno against the model's; `also` are others that are right."""
        hands = hands or self.some(self.hands)
        handle = next((each for each in self.open if (each.hands, each.fd) == (hands, words[0])), None)
        where = f"{handle.thing.arc.name}/{handle.thing.path}" if handle else ""
        told = f" {self.hands.index(hands)} {what}{words!r:.160} {where}"
        self.told[-1] += told.replace(str(self.mounted.point), "")
        error, answer = hands(what, *words)
        names = errno.errorcode.get(error, error), errno.errorcode.get(expected, expected)
        assert error in (expected, *also) or (error == errno.EIO and handle and handle.spoilt), (
            f"{names[0]}, and not {names[1]}, after:\n" + "\n".join(self.told[-60:])
        )
        return answer

    def close_handle(self, each: Open) -> None:
        """close(2), and what it says."""
        thing = each.thing
        expected = 0
        if not isinstance(thing, Held):
            expected = self.model.close(thing, id(each)) if isinstance(thing, Draft) else self.model.finish(thing)
        self.same("close", (each.fd,), expected, each.hands)
        self.open.remove(each)

    def close_all(self) -> None:
        self.told.append("close all")
        while self.open:
            self.close_handle(self.open[0])

    def crawl(self) -> None:
        """A crawl replaces, adds or removes one ARC, and all handles in it are stale."""
        arc = self.some(ARCS)
        body = self.some((b"new", b"newer", b"newest", None))
        if body is not None:
            self.count += 1
            body = body + str(self.count).encode()
        self.told[-1] += f" {arc} {body!r}"
        with locks.exclusive(self.archive.committing_lock(DOMAIN)):
            tag = archives.publish(self.archive, pages={arc: body}, beside_mounts=True)
        changes = self.mounted / ".changes"
        eventually(lambda: str(tag) in changes.read_text("ascii"), 60)
        self.model.crawl({arc: body})

    def remount(self) -> None:
        self.close_all()
        assert run(UMOUNT, self.mounted.point).returncode == 0
        self._mount_again()

    def kill(self) -> None:
        os.kill(self.mounted.pid, signal.SIGKILL)
        for each in self.open:
            each.hands("close", each.fd)
        self.open.clear()
        self._mount_again()

    def _mount_again(self) -> None:
        self.mounted.clear()
        self.mounted = self.mount()
        self.model.end()

    # -- what is shown -----------------------------------------------------------------------------------------------

    def check_arc(self, name: str) -> None:
        """Everything of one ARC, as some process sees it, is as the model has it."""
        hands = self.some(self.hands)
        arc = self.model.arcs.get(name)
        self.told.append("check")
        inner = self.model.inner(name)
        there = 0 if arc or inner else errno.ENOENT
        answer = self.same("look", (self.path(name), "data.xml", inner), there, hands)
        if arc is None:
            assert answer is None or answer[0] == dict.fromkeys(inner), "\n".join(self.told[-60:])
            return
        found, document = answer
        shown = arc.shown() | {"data.html": arc.body, "headers.http": archives.HEAD, "data.xml": document}
        expected: dict[str, object] = {path: [len(body), len(body), digest(body)] for path, body in shown.items()}
        expected |= dict.fromkeys([*arc.folders, *inner])
        other = {path for path in found.keys() | expected if found.get(path, "") != expected.get(path, "")}
        assert not other, "\n".join(
            [*self.told[-60:], *(f"{path}: {found.get(path, '')}, and not {expected.get(path, '')}" for path in other)]
        )
        assert nodes_of(document) == arc.nodes, "\n".join(self.told[-60:])
        self.told.pop()

    def check_git(self) -> None:
        """In the end, git has what the mount shows, and finds no fault."""
        self.close_all()
        assert run(UMOUNT, self.mounted.point).returncode == 0
        self.model.end()
        assert self.in_git().check() == []

    def in_git(self) -> Repository:
        """Git has what was confirmed."""
        store = archives.store_of(self.archive)
        head = store.head()
        assert head is not None
        for name, arc in self.model.arcs.items():
            final = {path: body for path, body in arc.files.items() if not self.model.settles or path not in arc.made}
            for path, body in final.items():
                entry = store.find(head.tree, f"{name}/{path}")
                assert entry is not None, (name, path)
                assert store.read(entry.oid) == body, (name, path)
            entry = store.find(head.tree, f"{name}/data.xml")
            assert entry is not None
            assert data_nodes.names(store.read(entry.oid)) == tuple(node for node, _ in arc.nodes)
        return store
