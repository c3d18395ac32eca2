"""Trees of ARCs for the tests of subset, removal and merge: an ARC is named by its path, its version by its body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS

OWN = ("data.html", DATA_XML, HEADERS)


def files_of_arc(path: str, body: str) -> dict[str, bytes]:
    """The three files of an ARC."""
    return {f"{path}/{name}": f"{path} {name} {body}".encode() for name in OWN}


def tree_of(store: Repository, arcs: Mapping[str, str] | Iterable[str], additions: Iterable[str] = ()) -> str:
    """A tree of ARCs (path → body) and additions (paths of files)."""
    bodies = arcs if isinstance(arcs, Mapping) else dict.fromkeys(arcs, "")
    files = dict.fromkeys(additions, b"added")
    for path, body in bodies.items():
        files |= files_of_arc(path, body)
    return store.edit(store.write_tree([]), {path: store.write_blob(body) for path, body in files.items()})


def arcs_of(store: Repository, tree: str | None) -> set[str]:
    """The ARCs of a tree."""
    paths = (each.path.rpartition("/") for each in store.differences(None, tree))
    return {folder for folder, _, name in paths if name == DATA_XML}


def additions_of(store: Repository, tree: str) -> set[str]:
    """The files of a tree that are none of an ARC's own."""
    arcs = arcs_of(store, tree)
    paths = (each.path for each in store.differences(None, tree))
    return {path for path in paths if not (path.rpartition("/")[0] in arcs and path.rpartition("/")[2] in OWN)}
