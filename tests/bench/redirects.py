"""The cost of redirects: an import of many, another one in which 1 % of them changed, and what that writes to git."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.crawl import agent, own_archive
from tests.bench.measure import Cost, cost
from tests.support import warcs
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.url_lists import REDIRECTS

SIZES = (10_000, 100_000)
_HOST = "www.example.org"


def redirects(sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each size, and print what a redirect costs and what a change of 1 % writes."""
    print("\nredirects   aim: 1 % of changes writes 5 % of the lists' bytes at most")
    for size in sizes:
        with own_archive() as archive, tempfile.TemporaryDirectory() as scratch:
            first = _imported(archive, Path(scratch), size, 0)
            before = _objects(archive)
            second = _imported(archive, Path(scratch), size, 1)
            after = _objects(archive)
            again = _imported(archive, Path(scratch), size, 2)
            unchanged = _objects(archive)
        lists = sum(length for kind, length in before.values() if kind == "blob")
        new = {kind: _sum(after, before, kind) for kind in ("blob", "tree")}
        idle = sum(_sum(unchanged, after, kind) for kind in ("blob", "tree"))
        print(
            f"  {size:7,}: first {first.processor / size * 1e6:5.0f} µs each, {first.anonymous:4.0f} MiB; "
            f"again {again.processor / size * 1e6:5.0f} µs, {again.anonymous:4.0f} MiB\n"
            f"           1 % changed: {new['blob'] / lists:.3f} of the lists' {lists:,} bytes in new lists, "
            f"{new['tree'] / lists:.3f} in new trees; unchanged: {idle} bytes; {second.processor / size * 1e6:.0f} µs",
            flush=True,
        )


def _imported(archive: Archive, folder: Path, size: int, edition: int) -> Cost:
    path = folder / f"{edition}.warc"
    with path.open("wb") as file:
        for number in range(size):
            target = f"/page/{number}{'' if edition == 0 or number % 100 else '/new'}"
            answer = warcs.http(b"", status="301 Moved", Location=target)
            file.write(
                warcs.record("response", f"http://{_HOST}/node/{number}", answer, f"202{edition}-01-01T00:00:00Z")
            )
    done = cost(agent("import", "--archive", str(archive.root), "--publication", "bench", "--complete", str(path)))
    if done.exit_code:
        raise SystemExit(f"the import ended with {done.exit_code}")
    return done


def _objects(archive: Archive) -> dict[str, tuple[str, int]]:
    """Object → kind and length, of the lists and the trees."""
    repository = Repository(archive.repository(_HOST))
    found: dict[str, tuple[str, int]] = {}

    def walk(tree: str) -> None:
        found[tree] = ("tree", len(repository.read_tree(tree)))
        for entry in repository.each(tree):
            if entry.is_tree:
                walk(entry.oid)
            else:
                found[entry.oid] = ("blob", repository.size(entry.oid))

    for oid in repository.refs("refs/crawls/").values():
        top = repository.find(repository.commit(oid).tree, REDIRECTS)
        if top is not None:
            walk(top.oid)
    return found


def _sum(after: dict[str, tuple[str, int]], before: dict[str, tuple[str, int]], kind: str) -> int:
    return sum(length for oid, (what, length) in after.items() if oid not in before and what == kind)
