"""The checks of `verify` in one domain's repository: refs, history, documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from webarcfs.archive.commit import progress
from webarcfs.archive.commit.progress import ADDITIONS
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, FORMS, MAIN, MET, PUBLICATIONS, SEEN, Repository
from webarcfs.archive.history import met_lists, sequence
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS
from webarcfs.archive.model.errors import Damaged, InvalidDocument, WebarcError
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, CommitTag, parse_compact_time
from webarcfs.archive.model.redirects import REDIRECTS, Redirect, is_place, read_list
from webarcfs.archive.model.url import domain_of

_MOST_LINES = 20
#: What webarc.db has of each document, beside its snapshots.
_INDEXED = ("url", "mimeType", "title", "createTime", *CAPTURE_FIELDS)


@dataclass
class Domain:
    """A domain's refs at one moment, and the findings on them."""

    name: str
    store: Repository
    main: str | None = None
    refs: dict[str, str] = field(default_factory=dict)  # of refs/crawls/
    sequence: dict[str, int] = field(default_factory=dict)  # commitTag → number
    findings: list[str] = field(default_factory=list)
    #: path → the fields that the database should contain; None if not all documents were read, or one is faulty
    current: dict[str, dict[str, str]] | None = None
    #: URL → redirect of main; None if a list cannot be read
    redirects: dict[str, Redirect] | None = None


def read_refs(store: Repository, name: str) -> Domain:
    """Read and check the refs of a domain. Raises Damaged if they cannot be listed."""
    domain = Domain(name, store)
    domain.main = _target(domain, MAIN)
    targets = ((time, _target(domain, CRAWLS + time)) for time in store.ref_names(CRAWLS))
    domain.refs = {time: target for time, target in targets if target is not None}
    for time, target in domain.refs.items():
        try:
            _read_crawl(domain, time, target)
        except WebarcError as error:
            domain.findings.append(f"{CRAWLS}{time}: {error}")
    if domain.refs and domain.main != domain.refs[max(domain.refs)]:
        domain.findings.append(f"{MAIN} is not where the newest crawl's ref is, {CRAWLS}{max(domain.refs)}")
    for kind in (SEEN, MET):
        alone = (time for time in store.ref_names(kind) if time not in domain.refs)
        domain.findings += [f"{kind}{time}: there is no crawl of that time" for time in alone]
    looks: tuple[tuple[str, Callable[[str], object]], ...] = (
        (PUBLICATIONS, store.entries),
        (SEEN, store.entries),
        (MET, partial(met_lists.read, store)),
        (FORMS, store.entries),
        (ADDITIONS, partial(progress.number, store)),
    )
    for kind, look in looks:
        for each in store.ref_names(kind):
            try:
                if (oid := _target(domain, kind + each)) is not None:
                    look(oid)
            except Damaged as error:
                domain.findings.append(f"{kind}{each}: {error}")
    return domain


def _target(domain: Domain, ref: str) -> str | None:
    """Return the target of a ref; None, with a finding, if it cannot be read."""
    try:
        return domain.store.ref(ref)
    except Damaged as error:
        domain.findings.append(str(error).removeprefix(f"{domain.store.path}: "))
        return None


def _read_crawl(domain: Domain, time: str, target: str) -> None:
    commit = sequence.crawl_commit(domain.store, target)
    tag = CommitTag(parse_compact_time(time), domain.name)
    if commit is None or commit.message.tag != tag:
        raise Damaged(f"it is on no commit of the crawl {tag}")
    number = commit.message.sequence
    if number in domain.sequence.values():
        raise Damaged(f"its number {number} is another crawl's, too")
    domain.sequence[str(tag)] = number
    kept = domain.store.ref(tag.seen_ref)
    if commit.message.seen != (kept or ""):
        saw = commit.message.seen or "all of it"
        raise Damaged(f"its publication saw {saw}, and {tag.seen_ref} is {kept or 'gone'}")
    listed = domain.store.ref(tag.met_ref)
    if commit.message.met != (listed or ""):
        named = commit.message.met or "none"
        raise Damaged(f"its list of what it met unchanged is {named}, and {tag.met_ref} is {listed or 'gone'}")


def fsck(store: Repository) -> Iterator[str]:
    """Yield the findings of `git fsck`, which reads all objects."""
    lines = store.check()
    yield from (f"git fsck: {line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"git fsck: and {len(lines) - _MOST_LINES} more lines"


def history(domain: Domain) -> Iterator[str]:
    """Check that main's history is linear, and that each crawl in it has its ref."""
    for commit in domain.store.history(domain.main):
        if len(commit.parents) > 1:
            yield f"history is no line: commit {commit.oid} has {len(commit.parents)} parents"
        if commit.message.tag.ref.removeprefix(CRAWLS) not in domain.refs:
            yield f"{commit.message.tag.ref} is missing, and commit {commit.oid} belongs to it"


def documents(domain: Domain, sound: str | None) -> Iterator[str]:
    """Check that each data.xml of main is valid, names its own ARC, and has its files beside it.

    With `sound`, a commit that was checked before, only the documents that differ from it are read.
    """
    store = domain.store
    head = store.head() if domain.main is None else store.commit(domain.main)
    if head is None:
        return
    before = _tree_of(store, sound)
    current: dict[str, dict[str, str]] = {}
    sound_so_far = before is None
    for difference in store.differences(before, head.tree):
        folder, _, name = difference.path.rpartition("/")
        if name != DATA_XML or difference.new is None:
            continue
        try:
            data_xml.validate(document := store.read(difference.new))
            fields = data_xml.metadata(document).as_fields()
        except (InvalidDocument, Damaged) as error:
            yield f"/{difference.path}: {error}"
            sound_so_far = False
            continue
        for line in _faults(domain, head.tree, folder, fields):
            yield f"/{difference.path}: {line}"
            sound_so_far = False
        current[fields["path"]] = {key: fields[key] for key in _INDEXED}
    domain.current = current if sound_so_far else None


def redirects(domain: Domain, sound: str | None) -> Iterator[str]:
    """Check that each list of redirects of main can be read, and lies where its URLs belong.

    With `sound`, a commit that was checked before, nothing is read if it has the same lists.
    """
    head = domain.store.head() if domain.main is None else domain.store.commit(domain.main)
    top = domain.store.find(head.tree, REDIRECTS) if head is not None else None
    before = _tree_of(domain.store, sound)
    if before is not None and domain.store.find(before, REDIRECTS) == top:
        return
    domain.redirects = {}
    for path, blob in domain.store.files(top.oid, REDIRECTS) if top is not None and top.is_tree else ():
        try:
            if not is_place(path):
                raise Damaged("there can be no list of redirects")
            for each in read_list(domain.store.read(blob), path):
                if domain_of(each.url) != domain.name:
                    raise Damaged(f"{each.url} is of another domain")
                if domain.redirects is not None:
                    domain.redirects[each.url] = each
        except Damaged as error:
            domain.redirects = None
            yield f"/{path}: {error}"


def met(domain: Domain, sound: str | None) -> Iterator[str]:
    """Check that the list of what each crawl met unchanged is of the URLs that its publication saw.

    With `sound`, a commit that was checked before, only the lists of later publications are read.
    """
    store = domain.store
    checked = 0
    if sound is not None:
        with suppress(Damaged):
            checked = domain.sequence.get(str(store.commit(sound).message.tag), 0)
    for time, target in domain.refs.items():
        crawl = sequence.crawl_commit(store, target)
        if crawl is None or crawl.message.sequence <= checked:
            continue
        try:
            if (found := met_lists.of_crawl(store, crawl)) is not None:
                met_lists.check(store, met_lists.seen_tree(crawl), found)
        except Damaged as error:
            yield f"{MET}{time}: {error}"


def _faults(domain: Domain, tree: str, folder: str, fields: dict[str, str]) -> Iterator[str]:
    if fields["path"] != f"/{domain.name}/{folder}":
        yield f"it is the data.xml of {fields['path']}"
    if fields["commitTag"] not in domain.sequence:
        yield f"it names the crawl {fields['commitTag']}, which is not there"
    if not fields["commitTag"].startswith(fields["crawlTime"]):
        yield f"its crawlTime {fields['crawlTime']} is not that of its commitTag {fields['commitTag']}"
    arc = domain.store.find(tree, folder)
    names = {entry.name for entry in domain.store.entries(arc.oid) if not entry.is_tree} if arc else set()
    if HEADERS not in names:
        yield f"there is no {HEADERS} beside it"
    if not any(name.startswith("data.") and name != DATA_XML for name in names) and "data" not in names:
        yield "there is no data file beside it"


def _tree_of(store: Repository, commit: str | None) -> str | None:
    try:
        return None if commit is None else store.commit(commit).tree
    except Damaged:
        return None
