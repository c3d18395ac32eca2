"""What a publication saw, as a tree."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.pipeline.publish import SeenTree, seen_part, subset
from tests.store.arcs import additions_of, arcs_of, files_of_arc, tree_of
from tests.support.properties import examples
from webarcfs.archive.git.repository import PUBLICATIONS, RefUpdate, Repository

pytestmark = pytest.mark.store

names = st.sampled_from(["a", "a.b", "a-b", "b", "x", "é", "\u2028"])
arc_paths = st.lists(names, min_size=1, max_size=4).map("/".join)


def walk(arcs: set[str]) -> list[str]:
    """In the order of the frontier: children right behind their folder."""
    return sorted(arcs, key=lambda path: path.replace("/", "\x01").encode())


def of(store: Repository, tree: str, seen: set[str], nested: bool = True) -> str:
    return subset(store, tree, ((path, nested) for path in walk(seen)))


def test_all_seen_is_the_tree_itself(store: Repository) -> None:
    """A publication that has a host to itself costs no object at all."""
    arcs = {f"{folder}/{n}.html" for folder in ("a", "b/c") for n in range(30)} | {"b", "b/c"}
    tree = tree_of(store, arcs, ["a/1.html/notes.txt", "b/deep/er/notes.txt"])
    before = sorted(store.path.glob("objects/??/*"))
    assert of(store, tree, arcs) == tree
    assert of(store, tree, arcs, nested=True) == tree
    assert sorted(store.path.glob("objects/??/*")) == before


def test_nothing_seen(store: Repository) -> None:
    tree = tree_of(store, ["a", "b"])
    assert of(store, tree, set()) == store.write_tree([]) == of(store, tree, {"c", "a/b"})


@pytest.mark.parametrize(
    ("seen", "additions"),
    [
        ({"blog"}, {"blog/notes.txt", "blog/mine/notes.txt"}),
        ({"blog/x"}, {"blog/x/notes.txt"}),
        ({"blog/x/deep/er"}, set()),
        ({"blog", "blog/x/deep/er"}, {"blog/notes.txt", "blog/mine/notes.txt"}),
        ({"blog", "blog/x"}, {"blog/notes.txt", "blog/mine/notes.txt", "blog/x/notes.txt"}),
    ],
)
def test_an_arc_inside_an_arc(store: Repository, seen: set[str], additions: set[str]) -> None:
    """`blog/` and `blog/x/` are two; each comes with its own additions and without the other."""
    tree = tree_of(
        store, ["blog", "blog/x", "blog/x/deep/er"], ["blog/notes.txt", "blog/mine/notes.txt", "blog/x/notes.txt"]
    )
    part = of(store, tree, seen)
    assert arcs_of(store, part) == seen
    assert additions_of(store, part) == additions


def test_arcs_that_are_not_there_are_passed_over(store: Repository) -> None:
    tree = tree_of(store, ["a/b", "c"])
    part = of(store, tree, {"a", "a/a", "a/a/x", "a/b", "a/b/c", "a/b/data.xml/x", "b/x", "c", "d"})
    assert arcs_of(store, part) == {"a/b", "c"}


@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(arc_paths, max_size=12), st.sets(arc_paths, max_size=8), st.sets(st.integers(0, 11)), st.booleans())
def test_against_a_naive_model(
    store: Repository, arcs: set[str], others: set[str], some: set[int], exact: bool
) -> None:
    """The subset has the files of the ARCs that were seen and are there, and no other."""
    seen = {path for number, path in enumerate(sorted(arcs)) if number in some} | others
    tree = tree_of(store, arcs)

    def nested(path: str) -> bool:
        return not exact or any(other.startswith(f"{path}/") for other in arcs)

    part = subset(store, tree, ((path, nested(path)) for path in walk(seen)))
    expected: dict[str, bytes] = {}
    for path in seen & arcs:
        expected |= files_of_arc(path, "")
    assert {each.path: store.read(str(each.new)) for each in store.differences(None, part)} == expected
    if arcs and arcs <= seen:
        assert part == tree


def test_what_came_out_last_is_not_worked_out_again(store: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a site that did not change no tree is read; another tree, other ARCs or a lost note are worked out anew."""
    arcs = {f"a/{n}.html" for n in range(9)}
    tree, other = tree_of(store, arcs), tree_of(store, arcs, ["a/1.html/notes.txt"])

    def part(of: str, seen: set[str]) -> SeenTree:
        found = seen_part(store, "mine", of, sorted(seen), lambda: ((path, False) for path in walk(seen)))
        assert found == SeenTree(subset(store, of, ((path, False) for path in walk(seen))), len(seen))
        old = store.ref(PUBLICATIONS + "mine")
        store.update_refs([RefUpdate(PUBLICATIONS + "mine", found.tree, old)] if old != found.tree else [])
        return found

    part(tree, arcs)
    with monkeypatch.context() as patched:
        patched.setattr(Repository, "entries", None)
        again = seen_part(store, "mine", tree, sorted(arcs), lambda: ((path, False) for path in walk(arcs)))
        assert again == SeenTree(tree, 9)
    part(other, arcs)
    part(other, arcs - {"a/3.html"})
    (store.path / "webarc-seen.json").write_text("{")
    part(tree, arcs)
