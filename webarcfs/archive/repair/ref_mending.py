"""The refs of a repository as written, and as they must be according to its objects.

One half of a damaged id is still intact, and identifies one object of the repository; main is where the newest crawl's
ref is; the refs of crawls and of additions follow from main's history. Refs that cannot be determined are reported.

A damaged name in packed-refs is that of the one missing ref that differs from it in a character or two. The ref of an
import of older captures follows from its commit's tag. Where not even the newest crawl's ref can be told, main is left
as it is, rather than at an older state. What a publication saw is written nowhere else: where its ref is lost it is
removed, so that the publication's next complete crawl removes no page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from webarcfs.archive.commit import progress
from webarcfs.archive.commit.progress import ADDITIONS
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, FORMS, INCOMING, MAIN, MET, PUBLICATIONS, SEEN, Commit, Repository
from webarcfs.archive.history import met_lists
from webarcfs.archive.history.feed import Feed
from webarcfs.archive.history.sequence import crawl_commit
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.repair import repository_files
from webarcfs.archive.repair.repository_files import PACKED, Packed

#: The remedy for a ref that can be determined.
MENDS = "`webarc-agent recover` mends it"
_HALF = 20  # hex digits of an id: objects that share so many are the same
_OID = 40
_MOST_WRONG = 2  # characters of a ref's name that may be damaged
#: In packed-refs, the id precedes this by so many characters.
_NAME = " refs/"
_OURS = (CRAWLS, PUBLICATIONS, SEEN, MET, FORMS, ADDITIONS, INCOMING)
#: Refs that a crawl or recover makes again.
_DERIVED = (PUBLICATIONS, SEEN, MET, FORMS, ADDITIONS, INCOMING)
_HEADER_WORDS = ("pack-refs", "peeled", "sorted")
_ID = re.compile(r"[0-9a-f]{40}")
_GOOD_NAME = re.compile(r"refs/[^\x00-\x20\x7f]+")


class Refs:
    """The refs of a repository as written, and as they must be. Raises NotFound, Damaged."""

    def __init__(self, archive: Archive, domain: str) -> None:
        self._archive, self._domain = archive, domain
        self._store = Repository(archive.repository(domain))
        self._packed, self._loose = _read(self._store.path)
        #: name → id, as it must be; name → text that is no valid id; lines to report
        self._right: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self.left: list[str] = []
        for name, text in self._written():
            (self._right if self._fits(name, text) else self._broken)[name] = text
        written = self._packed.refs.keys() | self._loose.keys()
        self._before = {name: text for name, text in self._right.items() if name in written}
        self._dropped: set[str] = set()
        self._judge()

    def _written(self) -> Iterator[tuple[str, str]]:
        loose = {name: text for name, text in self._loose.items() if not text.startswith(b"ref: ")}
        yield from ((name, oid) for name, oid in self._packed.refs.items() if name not in self._loose)
        yield from ((name, content[:_OID].decode("latin-1")) for name, content in loose.items())
        for name, text in pieces(self._packed.odd):
            if name not in self._packed.refs and name not in self._loose:
                yield name, text

    def _fits(self, name: str, oid: str) -> bool:
        """Return whether a ref may have this target: it exists, is readable, and of the right kind."""
        if not _ID.fullmatch(oid) or not _GOOD_NAME.fullmatch(name):
            return False
        try:
            if name == MAIN:
                return self._store.commit(oid).message.tag.domain == self._domain
            if name.startswith(CRAWLS):
                return self._store.commit(oid).message.tag.ref == name
            if name.startswith((PUBLICATIONS, SEEN, FORMS)):
                self._store.entries(oid)
            elif name.startswith(MET):
                met_lists.read(self._store, oid)
            elif name.startswith(ADDITIONS):
                progress.number(self._store, oid)
            else:
                self._store.size(oid)
        except WebarcError:
            return False
        return True

    # -- required values -----------------------------------------------------------------------------------------

    def _judge(self) -> None:
        for name, text in list(self._broken.items()):
            self._settle(name, self._alike(text, name))
        self._rename_crawls()
        self._rename({MAIN})
        if MAIN not in self._right:
            self._tell_main()
        newest, publications, done = self._history
        for name, oid in newest.items():
            if name not in self._right:
                self._settle(name, oid)
        for name, text in list(self._broken.items()):
            if name.startswith(CRAWLS) and not _ID.fullmatch(text):
                self._tell_crawl(name)
        beside = self._beside_crawls()
        for name in [name for name in self._right if name.startswith((SEEN, MET)) and name not in beside]:
            if CRAWLS + name.rpartition("/")[2] not in self._broken:
                self._drop(name)
        for name, oid in beside.items():
            self._settle(name, oid)
        self._rename({PUBLICATIONS + each for each in publications} | {ADDITIONS + each for each in done})
        for name in list(self._broken):
            self._give_up(name, done)

    def _settle(self, name: str, oid: str | None) -> None:
        if oid is not None:
            self._right[name] = oid
            self._broken.pop(name, None)
            self._dropped.discard(name)

    def _drop(self, name: str) -> None:
        self._dropped.add(name)
        self._right.pop(name, None)
        self._broken.pop(name, None)

    def _alike(self, text: str, name: str) -> str | None:
        """Return the one possible target of a ref that agrees with a damaged text in its first or second half."""
        first, second = text[:_HALF], text[_HALF:_OID]
        found = [oid for oid in set(self._ids) if oid[:_HALF] == first or oid[_HALF:] == second]
        fitting = [oid for oid in found if self._fits(name, oid)]
        return fitting[0] if len(fitting) == 1 else None

    def _rename_crawls(self) -> None:
        """Rename refs on another crawl's commit than their name says: their id is sound, so their name is damaged."""
        for name, text in [*self._broken.items(), *self._right.items()]:
            if name == MAIN or (name in self._right and name.startswith(_OURS)) or not _ID.fullmatch(text):
                continue
            with suppress(WebarcError):
                if self._store.is_commit(text):
                    right = self._store.commit(text).message.tag.ref
                    if name.startswith(CRAWLS) or _is_like(name, right):
                        self._move(name, text, right)

    def _rename(self, known: set[str]) -> None:
        """Rename refs whose name differs from that of a missing one by a character or two."""
        for missing in sorted(known - self._right.keys() - self._broken.keys()):
            refs = self._right | self._broken
            like = [name for name in refs if name not in known and _is_like(name, missing)]
            if len(like) != 1:
                continue
            text = refs[like[0]]
            oid = text if self._fits(missing, text) else self._alike(text, missing)
            if oid is not None:
                self._move(like[0], oid, missing)

    def _move(self, name: str, oid: str, right: str) -> None:
        self._drop(name)
        if right not in self._right:
            self._settle(right, oid)

    def _tell_main(self) -> None:
        """Set main to the newest crawl's ref, or to additions on top: after a power cut the ref may be behind."""
        if _ID.fullmatch(self._broken.get(MAIN, "")):
            return  # its text is sound, and its object is damaged or gone: an older state is no remedy
        there = [name for name in self._right if name.startswith(CRAWLS)]
        wanted = [name for name in self._broken if name.startswith(CRAWLS)]
        with suppress(WebarcError):
            tags = (CommitTag.parse(line) for line in Feed(self._archive.changes).lines())
            wanted += [tag.ref for tag in tags if tag.domain == self._domain]
        newest = max(there, default="")
        if newest and newest >= max(wanted, default=""):
            self._settle(MAIN, self._with_additions(self._right[newest]))
        elif newest or MAIN in self._broken or wanted:
            self.left.append(f"{MAIN}: where it was cannot be told, the newest crawl's ref is damaged or gone as well")

    def _with_additions(self, oid: str) -> str:
        """Return the newest commit of additions on top of a commit, if each is the only one on its parent."""
        while above := [each.oid for each in self._commits if oid in each.parents and not each.message.is_crawl]:
            if len(above) > 1:
                self.left.append(f"{MAIN}: it is at {oid}; of {', '.join(above)}, on top of it, one may be newer")
                break
            oid = above[0]
        return oid

    @cached_property
    def _history(self) -> tuple[dict[str, str], set[str], dict[str, int]]:
        """Of main's history: the newest commit of each crawl's ref, the publications, the progress of each log."""
        newest: dict[str, str] = {}
        publications: set[str] = set()
        done: dict[str, int] = {}
        with suppress(Damaged):  # the history before it is unknown
            for commit in self._store.history(self._right.get(MAIN)):
                newest.setdefault(commit.message.tag.ref, commit.oid)
                publications |= {commit.message.publication} - {""}
                done = {
                    log: max(done.get(log, 0), number) for log, number in [*done.items(), *commit.message.done.items()]
                }
        return newest, publications, done

    def _beside_crawls(self) -> dict[str, str]:
        """Return the readable trees and lists in crawls' trailers Seen and Met, each by its ref."""
        found: dict[str, str] = {}
        for name, oid in self._right.items():
            if name.startswith(CRAWLS):
                with suppress(WebarcError):
                    crawl = crawl_commit(self._store, oid)
                    if crawl is None:
                        continue
                    tag, message = crawl.message.tag, crawl.message
                    named = {tag.seen_ref: message.seen, tag.met_ref: message.met}
                    found |= {ref: target for ref, target in named.items() if target and self._fits(ref, target)}
        return found

    def _tell_crawl(self, name: str) -> None:
        """Find the commit of a crawl outside of main's history, as after an import of older captures, by its tag."""
        own = [commit for commit in self._commits if commit.message.tag.ref == name]
        below = {parent for commit in own for parent in commit.parents}
        tips = [commit.oid for commit in own if commit.oid not in below]
        if len(tips) == 1:
            self._settle(name, tips[0])

    def _give_up(self, name: str, done: dict[str, int]) -> None:
        """Report a ref that could not be determined, or drop a derived one."""
        log = name.removeprefix(ADDITIONS)
        if _ID.fullmatch(self._broken[name]) and not name.startswith(_DERIVED):
            self.left.append(f"{name}: it is at {self._broken[name]}, which cannot be read; a backup may have that")
        elif name == MAIN:
            pass  # reported already
        elif name.startswith(ADDITIONS) and log in done:
            self._settle(name, self._store.write_blob(progress.body(done[log])))
        elif name.startswith((ADDITIONS, INCOMING, SEEN, MET)):
            self._drop(name)  # finished work is repeated, and dropped again; no crawl names such a tree or list
        elif not _GOOD_NAME.fullmatch(name):
            self._drop(name)
            self.left.append(f"{PACKED}: of a line only {name!a} can be read, and it is removed")
        elif name.startswith(PUBLICATIONS):
            self._drop(name)
            self.left.append(
                f"{name}: what it was at cannot be told, and it is removed; the next complete crawl of"
                f" {name.removeprefix(PUBLICATIONS)} makes it anew, and removes no page"
            )
        else:
            self.left.append(f"{name}: what it was at cannot be told; a backup may have it")

    @cached_property
    def _ids(self) -> list[str]:
        return list(self._store.ids())

    @cached_property
    def _commits(self) -> list[Commit]:
        """All readable commits, reachable from a ref or not."""
        found = []
        for oid in set(self._ids):
            with suppress(WebarcError):
                if self._store.is_commit(oid):
                    found.append(self._store.commit(oid))
        return found

    # -- writing -------------------------------------------------------------------------------------------------

    @property
    def are_wrong(self) -> bool:
        """Whether any of them differs from what it must be."""
        return bool(self.left or self._dropped or self._broken) or self._right != self._before

    def findings(self) -> Iterator[str]:
        """Yield a line for each ref that differs from what it must be."""
        yield from self.left
        for name in sorted(self._dropped):
            yield f"{name}: its name is damaged; {MENDS}"
        for name, oid in sorted(self._right.items()):
            if self._before.get(name) != oid:
                yield f"{name}: it should be at {oid}; {MENDS}"

    def write(self, keep: Callable[[str], object]) -> list[str]:
        """Write the refs that differ; return a line for each. `keep` receives each file's name before the change."""
        path, done = self._store.path, []
        for name, oid in sorted(self._right.items()):
            changed = self._before.get(name) != oid
            if changed:
                done.append(f"{name} is at {oid} again")
            if name in self._loose:
                if changed or not repository_files.is_sound_ref(self._loose[name]):
                    keep(name)
                    repository_files.put(path, name, f"{oid}\n".encode())
            elif changed and name not in self._packed.refs:
                repository_files.put(path, name, f"{oid}\n".encode())
        packed = {
            name: oid if name in self._loose else self._right.get(name, oid)
            for name, oid in self._packed.refs.items()
            if name not in self._dropped
        }
        if not self._packed.is_sound or packed != self._packed.refs:
            keep(PACKED)
            repository_files.put(path, PACKED, repository_files.format_packed(Packed(packed, self._packed.peeled)))
            done.append(f"{PACKED} is in order again")
        for name in sorted(self._dropped & self._loose.keys()):
            keep(name)
            repository_files.remove(path, name)
        return done


def _read(path: Path) -> tuple[Packed, dict[str, bytes]]:
    """Return the packed refs, and the loose ones."""
    while True:
        packed = repository_files.read_packed(path) or Packed()
        loose = repository_files.loose_refs(path)
        if (
            repository_files.read_packed(path) or Packed()
        ) == packed:  # else a ref packed meanwhile would be in neither
            return packed, loose


def pieces(odd: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each ref in odd lines of packed-refs, where the end of a line may be damaged, too."""
    for run in odd:
        starts = [at - _OID for at in _find(run, _NAME) if at >= _OID]
        if not starts and not any(word in run for word in _HEADER_WORDS):
            starts = [0]
        for start, end in zip(starts, [*(start - 1 for start in starts[1:]), len(run)], strict=False):
            text, name = run[start : start + _OID], run[start + _OID + 1 : end]
            if len(text) == _OID and name:
                yield name, text


def _find(text: str, word: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(word), text)]


def _is_like(name: str, other: str) -> bool:
    return len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) <= _MOST_WRONG
