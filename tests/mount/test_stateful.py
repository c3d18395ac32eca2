"""A mount against a model (tests/support/model.py): random operations of several processes, interleaved step by step.

Crawls publish, replace and remove ARCs meanwhile, the mount is unmounted and killed and comes again. After each step
the answer and what the mount shows must be the model's. `STATEFUL_SEEDS` and `STATEFUL_STEPS` make it long.
"""

from __future__ import annotations

import errno
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.mount.conftest import _folder
from tests.support import archives
from tests.support.hands import digest
from tests.support.model import Draft, Held, Paper
from tests.support.stateful import ARCS, FOLDERS, NAMES, NODES, Chance, Open, Run

pytestmark = pytest.mark.mount

SEEDS = int(os.environ.get("STATEFUL_SEEDS", "1"))
STEPS = int(os.environ.get("STATEFUL_STEPS", "50"))


class Steps(Run):
    """The steps: each is one operation, or a few, of some process."""

    #: How often each step is taken, in proportion.
    names = (
        ["create"] * 6 + ["write"] * 8 + ["close_one"] * 6 + ["fsync"] * 2 + ["paper"] * 3
        + ["reopen", "reopen_anew", "reopen_open", "reopen_open", "mkdir", "mkdir", "truncate"]
        + ["write_at", "write_at", "close_copy", "close_copy", "write_mapped", "see", "see"]
        + ["rename"] * 3 + ["rewrite", "save", "crawl", "crawl"]
        + ["hold", "hold", "change", "change", "fsync_folder"]
    )  # fmt: skip

    #: More of them where files are provisional.
    of_makers = ["remove"] * 4 + ["reopen_closed"] * 4 + ["rename_own"] * 3

    def opened(self, what: str, arc: str, path: str, expected: tuple[int, Draft | Paper | None]) -> None:
        error, thing = expected
        hands = self.some(self.hands)
        late = error == errno.EPERM and what in ("write", "anew") and self.model.just_closed(arc, path)
        fd = self.same("open", (self.path(arc, path), what), error, hands, *([0] if late else []))
        if fd is not None and thing is None:  # the kernel tells of a last close when close(2) has returned
            thing = self.model.revived(arc, path)
            if what == "anew":
                self.model.truncate(thing, 0)
        if thing is not None:
            handle = Open(hands, fd, thing, append=what == "append draft")
            self.open.append(handle)
            if isinstance(thing, Draft):
                self.model.use(thing, id(handle))

    def create(self) -> None:
        arc, path = self.some(ARCS), self.some_path()
        self.opened("create", arc, path, self.model.create(arc, path))

    def reopen(self) -> None:
        arc, path = self.some(ARCS), self.some_path()
        self.opened("write", arc, path, self.model.reopen(arc, path))

    def reopen_anew(self) -> None:
        """open(O_RDWR | O_TRUNC): one's own open file is empty then, what is there is refused."""
        arc, path = self.some(ARCS), self.some_path()
        error, draft = self.model.reopen(arc, path)
        if draft is not None and self.model.truncate(draft, 0):
            error, draft = errno.ESTALE, None
        self.opened("anew", arc, path, (error, draft))

    def reopen_open(self) -> None:
        """One more handle of a file that is open, by its name: it is the same file."""
        drafts = [(name, path) for name, arc in self.model.arcs.items() for path in arc.drafts]
        if drafts:
            arc, path = self.some(drafts)
            self.opened(self.some(("write", "append draft")), arc, path, self.model.reopen(arc, path))

    def _own(self) -> list[tuple[str, str]]:
        """The files that are their maker's still."""
        return [(name, path) for name, arc in self.model.arcs.items() for path in arc.made]

    def reopen_closed(self) -> None:
        """A provisional file is opened again, or cut by its name."""
        if own := self._own():
            arc, path = self.some(own)
            what = self.some(("write", "anew", "append draft", "cut"))
            if what == "cut":
                expected = self.model.change(arc, path, what)
                self.same(what, (self.path(arc, path),), 0 if expected is None else expected)
                return
            error, draft = self.model.reopen(arc, path)
            if what == "anew" and draft is not None and self.model.truncate(draft, 0):
                error, draft = errno.ESTALE, None
            self.opened(what, arc, path, (error, draft))

    def remove(self) -> None:
        """unlink(2) of one's own, open or not."""
        if own := self._own():
            arc, path = self.some(own)
            expected = self.model.change(arc, path, "unlink")
            self.same("unlink", (self.path(arc, path),), 0 if expected is None else expected)

    def rename_own(self) -> None:
        """Onto another one's name, often: that of one's own, or of a final file."""
        own = self._own()
        if own:
            arc, old = self.some(own)
            found = self.model.arcs[arc]
            new = self.some([*found.made, *found.files])
            self.same("rename", (self.path(arc, old), self.path(arc, new)), self.model.rename(arc, old, new))

    def _draft(self) -> Iterator[tuple[Open, Draft]]:
        """Some handle of a file that is being written."""
        handles = [(each, each.thing) for each in self.open if isinstance(each.thing, Draft)]
        if handles:
            yield self.some(handles)

    def truncate(self) -> None:
        """ftruncate(2) of one's own open file."""
        for each, draft in self._draft():
            size = self.some((0, 1, 5, 3000))
            expected = self.model.truncate(draft, size)
            if not expected:
                self.model.use(draft, id(each))
            self.same("truncate", (each.fd, size), expected, each.hands)

    def write_at(self) -> None:
        """pwrite(2) anywhere; with O_APPEND that is at the end (pwrite(2), BUGS)."""
        for each, draft in self._draft():
            data, at = self.data(), self.some((0, 1, 4095, 5000))
            self.same("pwrite", (each.fd, data, at), self._written(each, draft, data, at), each.hands)

    def _written(self, each: Open, draft: Draft, data: str, at: int) -> int:
        """The model's answer to a write."""
        expected = self.model.write(draft, data.encode(), len(draft.buffer) if each.append else at)
        if not expected:
            self.model.use(draft, id(each))
        return expected

    def close_copy(self) -> None:
        """close(2) of a copy (dup): what was written is confirmed, and the file goes on."""
        for each, draft in self._draft():
            self.same("close copy", (each.fd,), self.model.flush(draft, id(each)), each.hands)

    def write_mapped(self) -> None:
        """Bytes written through a mapping, by whichever handle, are those that all handles see."""
        for each, draft in self._draft():
            if draft.arc.stale or draft.gone or not draft.buffer or (draft.removed and self.binding == "fusepy"):
                continue
            at, data = self.some((0, len(draft.buffer) // 2)), "m"
            if self.binding == "fusepy":
                self.same("map", (each.fd, at, data), errno.ENODEV, each.hands)
                self.model.flush(draft, id(each))  # mmap in Python closes a copy of the handle all the same
                continue
            assert not self.model.write(draft, data.encode(), at)
            draft.hidden = False
            assert not self.model.flush(draft, id(each))
            answer = self.same("map", (each.fd, at, data), 0, each.hands)
            assert answer == digest(draft.buffer), "\n".join(self.told[-60:])

    def see(self) -> None:
        """Every handle of a draft tells its size, its end and its bytes as they are now."""
        for each, draft in self._draft():
            nameless = draft.removed and self.binding == "fusepy"  # fstat is ENOENT there
            if not draft.arc.stale and not draft.gone and not nameless:
                size = len(draft.buffer)
                answer = self.same("seen", (each.fd, size + 1), 0, each.hands)
                assert answer == [size, size, digest(draft.buffer)], "\n".join(
                    [*self.told[-60:], str(answer), str(size)]
                )
                each.at = size  # lseek moved it there

    def paper(self) -> None:
        arc = self.some(ARCS)
        self.opened("append", arc, "data.xml", self.model.paper(arc))

    def write(self) -> None:
        for each in self._one():
            if isinstance(each.thing, Held):
                self.read_held(each, each.thing)
            elif isinstance(each.thing, Draft):
                data = self.data()
                expected = self._written(each, each.thing, data, each.at)
                self.same("write", (each.fd, data), expected, each.hands)
                each.at = each.at if expected else len(each.thing.buffer) if each.append else each.at + len(data)
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
            self.close_handle(each)

    def _confirm(self, thing: Draft | Paper | Held) -> int:
        if isinstance(thing, Held):
            return 0
        return self.model.confirm(thing) if isinstance(thing, Draft) else self.model.finish(thing)

    def _one(self) -> Iterator[Open]:
        if self.open:
            yield self.some(self.open)

    def hold(self) -> None:
        """Open for reading, and keep that."""
        arc, path = self.some(ARCS), self.some(("data.html", "headers.http", self.some_path(), self.some_path()))
        expected, held = self.model.hold(arc, path)
        if expected or held is not None:
            hands = self.some(self.hands)
            fd = self.same("open", (self.path(arc, path), "hold"), expected, hands)
            self.open += [Open(hands, fd, held)] if held is not None else []

    def read_held(self, each: Open, held: Held) -> None:
        """It is that version to its end, whatever is published or confirmed meanwhile."""
        answer = self.same("held", (each.fd, len(held.body) + 1), 0, each.hands)
        assert answer in (digest(held.body), None), "\n".join(self.told[-60:])

    def change(self) -> None:
        """What changes nothing, or is refused."""
        arc, how = self.some(ARCS), self.some(("unlink", "rmdir", "cut", "chmod", "utime"))
        path = self.some((self.some_path(), self.some_path(), self.some(("d", "d/e", "data.html", "data.xml"))))
        expected = self.model.change(arc, path, how)
        if expected is not None:
            self.same(how, (self.path(arc, path),), expected)

    def fsync_folder(self) -> None:
        """What was confirmed in the domain is in git then."""
        arc = self.some(ARCS)
        if arc in self.model.arcs:
            self.same("fsync folder", (self.path(arc),), 0)
            self.in_git()

    def mkdir(self) -> None:
        arc, path = self.some(ARCS), self.some(("d", "d/e", "one", "data.txt.d"))
        self.same("mkdir", (self.path(arc, path), 0o755), self.model.mkdir(arc, path))
        for each in self.open:
            stale = each.thing.arc.stale and (each.thing.arc.name, each.thing.path) == (arc, path)
            each.spoilt = each.spoilt or (stale and self.binding == "fusepy")

    def rename(self) -> None:
        """In its folder most often, as those who save by renaming do."""
        arc, folder = self.some(ARCS), self.some(FOLDERS)
        old, new = folder + self.some(NAMES), self.some((folder, folder, self.some(FOLDERS))) + self.some(NAMES)
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

    def save(self) -> None:
        """The same by way of another file, which is renamed onto data.xml, closed or not; gone then, if it succeeds."""
        arc, name, how = self.some(ARCS), self.some(NODES), self.some(("more", "more", "fewer", "meta"))
        path, early = self.some_path(), self.some((True, False))
        error, draft = self.model.create(arc, path)
        hands = self.some(self.hands)
        fd = self.same("open", (self.path(arc, path), "create"), error, hands)
        if draft is None:
            return
        each = Open(hands, fd, draft)
        self.open.append(each)
        self.model.use(draft, id(each))
        old = self.same("read", (self.path(arc, "data.xml"),), 0, hands).decode()
        self.count += 1
        new, expected = self._rewritten(old, draft.arc.nodes, name, how)
        self.same("write", (fd, new), self._written(each, draft, new, 0), hands)
        each.at = len(new)
        if not early:
            self.close_handle(each)
        self.same("rename", (self.path(arc, path), self.path(arc, "data.xml")), expected, hands)
        if not expected:
            self.model.became(draft)
            draft.arc.nodes += [(name, str(self.count))] if how == "more" else []

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


def compare(binding: str, chance: Chance, steps: int, *, settles: bool) -> None:
    """That many steps on a new archive, with a few ends of the mount among them."""
    for folder in _folder():
        archive = archives.make_archive(folder)
        taken = Steps(archive, binding, chance, settles=settles)
        if settles:
            taken.names = [*taken.names, *taken.of_makers]
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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the kernel does not refuse by mode")
@pytest.mark.timeout(max(300, STEPS * 5))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mount_answers_as_the_model_does(binding: str, seed: int) -> None:
    """SEMANTICS.md as a whole: what is written, by whom, in which order, whatever is published meanwhile.

    Every other run has provisional files.
    """
    compare(binding, random.Random(seed), STEPS, settles=seed % 2 == 1)


class Drawn:
    """Decisions of hypothesis, which makes a failure small."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def choice(self, seq: Any, /) -> Any:
        return self._data.draw(st.sampled_from(seq))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the kernel does not refuse by mode")
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
    drawn = Drawn(data)
    compare(binding, drawn, 25, settles=drawn.choice((False, True)))
