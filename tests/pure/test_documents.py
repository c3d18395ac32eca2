"""The documents keep up: what must be named in one of them is named there, and what they name exists."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent.cli import cli
from tests.support.sources import MODULES
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README", "ARCHITECTURE", "REQUIREMENTS", "SEMANTICS", "SECURITY", "CHANGELOG", "CONTRIBUTING")
#: Every id of the specification, in its order: group → number → how many it has below it.
SPECIFICATION = tuple(
    f"{group}-{number}{sub}"
    for group, below in {
        "Cr": (4, 3, 0, 0, 0, 0, 4, 2, 0, 0, 3, 8, 0, 2, 0),
        "Fi": (0, 0, 0, 4),
        "Ar": (2, 4, 0, 0, 0, 0, 0, 1, 0, 0),
        "Cl": (0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2),
        "Sv": (0, 4, 0, 0, 5),
        "Xm": (2, 0, 3, 0, 2),
        "Db": (0, 0, 0, 0, 2, 0),
    }.items()
    for number, count in enumerate(below, 1)
    for sub in ("", *(f".{each}" for each in range(1, count + 1)))
)
#: Every id of the parliament's archive, in the order of the groups: group → how many it has.
PARLIAMENT = tuple(
    f"BT-{group}-{number}"
    for group, count in {
        "scope": 17, "role": 9, "wf": 12, "adm": 7, "new": 7, "cap": 10, "raw": 7, "stat": 14, "conv": 10, "err": 6,
        "link": 12, "form": 7, "xhtml": 5, "index": 5, "search": 12, "ui": 12, "edit": 5, "cat": 10, "qa": 7, "rel": 7,
        "pres": 7, "store": 6, "backup": 6, "sec": 5, "auth": 9, "plan": 11,
    }.items()
    for number in range(1, count + 1)
)  # fmt: skip
TARANTULA = tuple(f"T-{number}" for number in range(1, 75))
LINKS = tuple(f"L-{number}" for number in range(1, 25))
IDS = (*SPECIFICATION, *PARLIAMENT, *TARANTULA, *LINKS)
ROW = re.compile(r"^\| ([A-Z][A-Za-z]*-[\w.-]*\d) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
#: The work that is to come, as the table at the head of REQUIREMENTS.md has it.
WORKS = ("catalogue", "reading room", "formats", "desk", "network", "machines")
#: What a row may say, and of which form the rest of its last column is.
STATUSES = {
    "done": r"([:;] .+)?",
    "partly": rf": .+ \(({'|'.join(WORKS)})\)",
    "different": r": .+",
    "later": rf": ({'|'.join(WORKS)})",
    "not software": "",
}


@cache
def document(name: str) -> str:
    return (ROOT / f"{name}.md").read_text("utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def rows() -> list[tuple[str, str, str, str, str]]:
    """The rows of REQUIREMENTS.md: id, asks, where, test, status."""
    return ROW.findall(document("REQUIREMENTS"))


def says(status: str) -> str | None:
    """The status of STATUSES that a row's last column is, if it has its form."""
    found = [word for word, rest in STATUSES.items() if re.fullmatch(word + rest, status)]
    return found[0] if len(found) == 1 else None


def test_the_sources_have_so_many_ids() -> None:
    assert (len(SPECIFICATION), len(PARLIAMENT), len(TARANTULA), len(LINKS)) == (117, 225, 74, 24)


def test_every_id_has_one_row() -> None:
    assert [row[0] for row in rows()] == list(IDS)


def test_nothing_in_the_tables_is_passed_over() -> None:
    """Every line that begins as a row is one, so that no other test leaves it out."""
    begun = re.findall(r"^\| ([A-Z][A-Za-z]*-\S+) \|", document("REQUIREMENTS"), re.MULTILINE)
    assert begun == [row[0] for row in rows()]


def test_every_row_has_a_status_of_the_list() -> None:
    assert [(row[0], row[4]) for row in rows() if says(row[4]) is None] == []


def test_a_row_has_a_place_and_a_test_as_its_status_wants_them() -> None:
    """What is done, or done in part, lies somewhere and is shown; what is to come does not and is not."""
    for name, _, where, test, status in rows():
        there = (where != "–", test != "–")
        if says(status) in ("done", "partly"):
            assert there == (True, True), name
        if says(status) in ("later", "not software"):
            assert there == (False, False), name


def test_the_works_to_come_are_explained_and_needed() -> None:
    text = document("REQUIREMENTS")
    explained = text.partition("| work | brings |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", explained, re.MULTILINE) == list(WORKS)
    assert all(re.search(rf"later: {work}|\({work}\)", text) for work in WORKS)


@pytest.mark.parametrize("place", sorted({row[2].strip("`") for row in rows()} - {"–"}))
def test_where_it_is_done_exists(place: str) -> None:
    folder = ROOT / "webarcfs" if (ROOT / "webarcfs" / place.partition("/")[0]).is_dir() else ROOT
    assert (folder / place).exists()


@pytest.mark.parametrize("test", sorted({row[3].strip("`") for row in rows()} - {"–"}))
def test_the_test_that_shows_it_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text("utf-8")


def test_each_module_that_the_code_names_exists() -> None:
    """A docstring or comment that leads to a module which has another name by now leads nowhere."""
    known = {path.name for folder in ("webarcfs", "agent", "tests") for path in (ROOT / folder).rglob("*.py")}
    wrong = set()
    for folder in ("webarcfs", "agent"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r"(?<![\w/>])([a-z][a-z0-9_]*\.py)\b(?!:)", path.read_text("utf-8")):
                if name not in known:
                    wrong.add(f"{path.relative_to(ROOT)}: {name}")
    assert wrong == set()


@pytest.mark.parametrize("name", ["ARCHITECTURE", "CONTRIBUTING"])
def test_each_private_name_that_a_document_has_is_in_the_code(name: str) -> None:
    code = "\n".join(path.read_text("utf-8") for path in MODULES.values())
    names = set(re.findall(r"`(_[A-Za-z_]+)`", document(name)))
    assert names and {word for word in names if not re.search(rf"\b{word}\b", code)} == set()


def test_every_module_is_in_the_architecture_and_every_one_there_exists() -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for folder in ("webarcfs", "agent")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py" or path.parent.name in ("filters", "commands")
    }
    named = set()
    folder = ""
    for line in document("ARCHITECTURE").splitlines():
        if heading := re.match(r"(?:### |\| )`((?:webarcfs|agent)/[a-z0-9/]*)`", line):
            folder = heading[1]
        elif row := re.match(r"\| `(\w+\.py)` \|", line):
            named.add(folder + row[1])
    assert named == modules


def test_every_dependency_has_its_reason() -> None:
    everything = project()
    wanted = [
        *everything["build-system"]["requires"],
        *everything["project"]["dependencies"],
        *(each for extra in everything["project"]["optional-dependencies"].values() for each in extra),
    ]
    reasons = document("ARCHITECTURE").partition("## What we stand on")[2]
    rows = [line for line in reasons.splitlines() if line.startswith("| `")]
    explained = {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split(" | ")[0])}
    assert explained == {re.split(r"[<>=!~ ]", each)[0] for each in wanted}


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_of_the_agent_is_in_the_readme(command: str) -> None:
    assert re.search(rf"webarc-agent {command}\b", document("README"))


def test_every_script_is_in_the_readme() -> None:
    assert [name for name in project()["project"]["scripts"] if f"{name} " not in document("README")] == []


def test_every_target_of_the_makefile_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    explained = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    assert {"demo", "test", "bench", "lint", "clean", "help"} <= explained
    code = " ".join(re.findall(r"`make [^`]+`|^ {4}make .*", "\n".join(map(document, DOCUMENTS)), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", code)) <= explained


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_between_documents_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", document(name)):
        assert (ROOT / target).exists()


def _section(begin: str, end: str) -> str:
    text = document("ARCHITECTURE")
    start = text.index(begin)
    return text[start : text.index(end, start)]


def _modules_with(pattern: str) -> set[str]:
    """The names of our modules in which a pattern occurs, but for comments and docstrings of one line."""
    found = set()
    for module, path in MODULES.items():
        lines = path.read_text("utf-8").splitlines()
        if any(re.search(pattern, line) and '"""' not in line for line in lines):
            found.add(f"{module.rpartition('.')[2]}.py")
    return found


def test_each_file_of_an_archive_is_in_the_architecture() -> None:
    root = Path("/archive")
    names = {value.name for value in vars(Archive(root)).values() if isinstance(value, Path) and value != root}
    assert {"notify.db", ".notifications-open"} < names
    text = _section("## The archive on disk", "## The tree")
    text += _section("## Locks and threads", "## What an adapter owes")
    assert {name for name in names if not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text)} == set()


def test_each_lock_is_in_the_architecture() -> None:
    section = _section("## Locks and threads", "## What an adapter owes")
    kinds = r"threading\.(R?Lock|Condition|(Bounded)?Semaphore)"
    held = _modules_with(rf"{kinds}\(|default_factory={kinds}\b|fcntl\.flock\(") - {"locks.py"}
    assert len(held) > 20
    assert {name for name in held if f"`{name}`" not in section and f"/{name}`" not in section} == set()


def test_each_cache_is_in_the_architecture() -> None:
    section = _section("**Memory.**", "## The agent")
    bounded = _modules_with(r"\bCache\(|lru_cache\((?!\))") - {"cache.py"}
    assert len(bounded) > 15
    assert {name for name in bounded if f"`{name}`" not in section and f"/{name}`" not in section} == set()


def test_every_folder_of_tests_is_run() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(project()["tool"]["pytest"]["ini_options"]["testpaths"]) == folders
