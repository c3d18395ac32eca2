"""A mount against a model (tests/support/model.py): random operations of several processes, interleaved step by step.

Crawls publish, replace and remove ARCs meanwhile, the mount is unmounted and killed and comes again. After each step
the answer and what the mount shows must be the model's. `STATEFUL_SEEDS` and `STATEFUL_STEPS` make it long.
"""

from __future__ import annotations

import errno
import os
import random
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.mount.conftest import _folder
from tests.support import archives
from tests.support.archives import DOMAIN
from tests.support.hands import Hands, digest
from tests.support.model import Draft, Model, Paper
from tests.support.mounts import UMOUNT, Mounted, eventually, run
from webarcfs.archive import arcxml, datanodes, locks
from webarcfs.archive.directory import Archive

pytestmark = pytest.mark.mount

SEEDS = int(os.environ.get("STATEFUL_SEEDS", "2"))
STEPS = int(os.environ.get("STATEFUL_STEPS", "50"))

ARCS = ("a.html", "b.html", "c.html")
NAMES = ("one", "two", "three", "data.txt")
FOLDERS = ("", "", "d/", "d/e/")
NODES = ("n1", "n2", "n3", "n4", "n5", "n6")
T = TypeVar("T")


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
    thing: Draft | Paper
    at: int = 0
    spoilt: bool = False


@lru_cache(maxsize=len(ARCS))
def nodes_of(document: bytes) -> list[tuple[str, str]]:
    """Name and text of the data nodes of a data.xml, which must be valid. Most looks find the one of the last."""
    arcxml.validate(document)
    return [(node.tag, node.text or "") for node in arcxml.parse_element(document)[1]]


class Run:
    """A real mount and its model, taking the same steps."""

    def __init__(self, archive: Archive, binding: str, chance: Chance) -> None:
        self.archive, self.binding, self.chance = archive, binding, chance
        self.model = Model()
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
        name = self.some(STEPS_OF)
        self.told.append(name)
        getattr(self, name)()
        self.check_arc(self.some(ARCS))

    def same(self, what: str, words: tuple[Any, ...], expected: int, hands: Hands | None = None) -> Any:
        """Do it, and hold the errno against the model's."""
        hands = hands or self.some(self.hands)
        handle = next((each for each in self.open if (each.hands, each.fd) == (hands, words[0])), None)
        where = f"{handle.thing.arc.name}/{handle.thing.path}" if handle else ""
        told = f" {self.hands.index(hands)} {what}{words!r:.160} {where}"
        self.told[-1] += told.replace(str(self.mounted.point), "")
        error, answer = hands(what, *words)
        names = errno.errorcode.get(error, error), errno.errorcode.get(expected, expected)
        assert error == expected or (error == errno.EIO and handle and handle.spoilt), (
            f"{names[0]}, and not {names[1]}, after:\n" + "\n".join(self.told[-60:])
        )
        return answer

    def opened(self, what: str, arc: str, path: str, expected: tuple[int, Draft | Paper | None]) -> None:
        hands = self.some(self.hands)
        fd = self.same("open", (self.path(arc, path), what), expected[0], hands)
        if expected[1] is not None:
            self.open.append(Open(hands, fd, expected[1]))

    def create(self) -> None:
        arc, path = self.some(ARCS), self.some_path()
        self.opened("create", arc, path, self.model.create(arc, path))

    def reopen(self) -> None:
        arc, path = self.some(ARCS), self.some_path()
        self.opened("write", arc, path, self.model.reopen(arc, path))

    def reopen_anew(self) -> None:
        """open(O_WRONLY | O_TRUNC): one's own open file is empty then, what is there is refused."""
        arc, path = self.some(ARCS), self.some_path()
        error, draft = self.model.reopen(arc, path)
        if draft is not None:
            self.model.truncate(draft, 0)
        self.opened("anew", arc, path, (error, draft))

    def truncate(self) -> None:
        """ftruncate(2) of one's own open file."""
        for each in self._one():
            if isinstance(each.thing, Draft):
                size = self.some((0, 1, 5, 3000))
                self.same("truncate", (each.fd, size), self.model.truncate(each.thing, size), each.hands)

    def paper(self) -> None:
        arc = self.some(ARCS)
        self.opened("append", arc, "data.xml", self.model.paper(arc))

    def write(self) -> None:
        for each in self._one():
            if isinstance(each.thing, Draft):
                data = self.data()
                expected = self.model.write(each.thing, data.encode(), each.at)
                self.same("write", (each.fd, data), expected, each.hands)
                each.at += 0 if expected else len(data)
            else:
                self._write_node(each, each.thing)

    def _write_node(self, each: Open, paper: Paper) -> None:
        name, what = self.some(NODES), self.some(("whole", "whole", "whole", "whole", "begin", "end", "wrong"))
        if what == "end" and paper.unfinished:
            name = paper.unfinished
        elif paper.unfinished:
            return
        text = str(self.count)
        xml = {
            "whole": f"<{name}>{text}</{name}>\n",
            "begin": f"<{name}>",
            "end": f"</{name}>",
            "wrong": f"<{name}></x>",
        }
        expected = self.model.append(paper, name, text, what)
        if what == "end" and not expected:
            paper.nodes.append((name, ""))
            paper.unfinished = ""
        self.same("write", (each.fd, xml[what]), expected, each.hands)

    def fsync(self) -> None:
        for each in self._one():
            self.same("fsync", (each.fd,), self._confirm(each.thing), each.hands)

    def close_one(self) -> None:
        for each in self._one():
            expected = self.model.close(each.thing) if isinstance(each.thing, Draft) else self.model.finish(each.thing)
            self.same("close", (each.fd,), expected, each.hands)
            self.open.remove(each)

    def _confirm(self, thing: Draft | Paper) -> int:
        return self.model.confirm(thing) if isinstance(thing, Draft) else self.model.finish(thing)

    def _one(self) -> Iterator[Open]:
        if self.open:
            yield self.some(self.open)

    def mkdir(self) -> None:
        arc, path = self.some(ARCS), self.some(("d", "d/e", "one", "data.txt.d"))
        self.same("mkdir", (self.path(arc, path), 0o755), self.model.mkdir(arc, path))
        for each in self.open:
            stale = each.thing.arc.stale and (each.thing.arc.name, each.thing.path) == (arc, path)
            each.spoilt = each.spoilt or (stale and self.binding == "fusepy")

    def rename(self) -> None:
        arc, folder = self.some(ARCS), self.some(FOLDERS)
        old, new = folder + self.some(NAMES), folder + self.some(NAMES)
        if self.model.may_rename(arc, old) is not None:
            expected = self.model.rename(arc, old, new)
            self.same("rename", (self.path(arc, old), self.path(arc, new)), expected)

    def rewrite(self) -> None:
        """All of data.xml anew, at once: with another node, without one, with other metadata."""
        arc, name, how = self.some(ARCS), self.some(NODES), self.some(("more", "more", "fewer", "meta"))
        if arc not in self.model.arcs:
            return
        found = self.model.arcs[arc]
        hands = self.some(self.hands)
        old = self.same("read", (self.path(arc, "data.xml"),), 0, hands).decode()
        self.count += 1
        new, expected = self._rewritten(old, found.nodes, name, how)
        fd = self.same("open", (self.path(arc, "data.xml"), "rewrite"), 0, hands)
        errors = [hands("write", fd, new)[0], hands("close", fd)[0]]
        told = next((error for error in errors if error), 0)
        assert told == expected, (errno.errorcode.get(told), errno.errorcode.get(expected), self.told[-60:])
        if not expected and how == "more":
            found.nodes.append((name, str(self.count)))

    def _rewritten(self, old: str, nodes: list[tuple[str, str]], name: str, how: str) -> tuple[str, int]:
        if how == "meta":
            return old.replace('title="', 'title="not '), errno.EPERM
        if how == "fewer" and nodes:
            gone, text = nodes[0]
            return re.sub(rf"<{gone}>{text}</{gone}>|<{gone}/>", "", old), errno.EPERM
        if how == "fewer":
            return old, 0
        node = f"<{name}>{self.count}</{name}>"
        new = old.replace("<arc:data/>", f"<arc:data>{node}</arc:data>").replace("  </arc:data>", f"{node}</arc:data>")
        return new, errno.EEXIST if name in dict(nodes) else 0

    def crawl(self) -> None:
        """A crawl replaces, adds or removes one ARC, and all handles in it are stale."""
        arc = self.some(ARCS)
        body = self.some((b"new", b"newer", b"newest", None))
        if body is not None:
            self.count += 1
            body = body + str(self.count).encode()
        with locks.exclusive(self.archive.committing_lock(DOMAIN)):
            tag = archives.publish(self.archive, pages={arc: body})
        changes = self.mounted / ".changes"
        eventually(lambda: str(tag) in changes.read_text("ascii"), 60)
        self.model.crawl({arc: body})

    def remount(self) -> None:
        while self.open:
            self.close_one()
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
        answer = self.same("look", (self.path(name), "data.xml"), 0 if arc else errno.ENOENT, hands)
        if arc is None:
            return
        found, document = answer
        shown = arc.shown() | {"data.html": arc.body, "headers.http": archives.HEAD, "data.xml": document}
        expected = {path: [len(body), len(body), digest(body)] for path, body in shown.items()}
        assert found == expected | dict.fromkeys(arc.folders), "\n".join(self.told[-60:])
        assert nodes_of(document) == arc.nodes, "\n".join(self.told[-60:])
        self.told.pop()

    def check_git(self) -> None:
        """In the end, git has what the mount shows, and finds no fault."""
        while self.open:
            self.told.append("end")
            self.close_one()
        assert run(UMOUNT, self.mounted.point).returncode == 0
        store = archives.store_of(self.archive)
        head = store.head()
        assert head is not None
        for name, arc in self.model.arcs.items():
            for path, body in arc.files.items():
                entry = store.find(head.tree, f"{name}/{path}")
                assert entry is not None, (name, path)
                assert store.read(entry.oid) == body, (name, path)
            entry = store.find(head.tree, f"{name}/data.xml")
            assert entry is not None
            assert datanodes.names(store.read(entry.oid)) == tuple(node for node, _ in arc.nodes)
        assert store.check() == []


#: How often each step is taken, in proportion.
STEPS_OF = (
    ["create"] * 6 + ["write"] * 8 + ["close_one"] * 6 + ["fsync"] * 2 + ["paper"] * 3
    + ["reopen", "reopen_anew", "mkdir", "mkdir", "truncate"]
    + ["rename"] * 3 + ["rewrite", "rewrite", "crawl", "crawl"]
)  # fmt: skip


def compare(binding: str, chance: Chance, steps: int) -> None:
    """That many steps on a new archive, with a few ends of the mount among them."""
    for folder in _folder():
        archive = archives.make_archive(folder)
        taken = Run(archive, binding, chance)
        try:
            for number in range(1, steps + 1):
                taken.step()
                if number % max(steps // 10, 25) == 0:
                    taken.told.append("end of the mount")
                    (taken.kill if chance.choice((True, False)) else taken.remount)()
            for arc in ARCS:
                taken.check_arc(arc)
            taken.check_git()
        except AssertionError as error:
            log = (archive.root / "log/mount.log").read_text("utf-8").splitlines()
            error.add_note("\n".join(["the mount's log:", *log[-40:]]))
            raise
        finally:
            taken.close()


@pytest.mark.timeout(max(300, STEPS * 5))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mount_answers_as_the_model_does(binding: str, seed: int) -> None:
    """Section 5 of DESIGN.md as a whole: what is written, by whom, in which order, whatever is published meanwhile."""
    compare(binding, random.Random(seed), STEPS)


class Drawn:
    """Decisions of hypothesis, which makes a failure small."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def choice(self, seq: Any, /) -> Any:
        return self._data.draw(st.sampled_from(seq))


@pytest.mark.timeout(600)
@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
@given(data=st.data())
def test_hypothesis_finds_no_difference(binding: str, data: st.DataObject) -> None:
    """The same, as hypothesis decides; Phase.shrink makes what it finds small."""
    compare(binding, Drawn(data), 25)
