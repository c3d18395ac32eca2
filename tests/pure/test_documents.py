"""The documents keep up: what must be named in one of them is named there, and what they name exists."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent.cli import cli

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README", "ARCHITECTURE", "REQUIREMENTS", "SEMANTICS", "SECURITY", "CHANGELOG", "CONTRIBUTING")
#: Every id of the specification, in its order: group → number → how many it has below it.
IDS = tuple(
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
ROW = re.compile(r"^\| ([A-Z][a-z]-[\d.]+) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
STATUS = re.compile(r"(done|partly|different|later)\b(.*)")


@cache
def document(name: str) -> str:
    return (ROOT / f"{name}.md").read_text("utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_specification_has_so_many_ids() -> None:
    assert len(IDS) == 117


def test_every_id_of_the_specification_has_one_row() -> None:
    assert [row[0] for row in ROW.findall(document("REQUIREMENTS"))] == list(IDS)


def test_every_row_has_a_status_and_says_why_it_is_not_done() -> None:
    for row in ROW.findall(document("REQUIREMENTS")):
        status = STATUS.fullmatch(row[4])
        assert status, row
        assert status[1] == "done" or status[2].startswith(": "), row
        assert status[1] != "done" or row[2] != "–", row


@pytest.mark.parametrize("place", sorted({row[2].strip("`") for row in ROW.findall(document("REQUIREMENTS"))} - {"–"}))
def test_where_it_is_done_exists(place: str) -> None:
    inside = ("archive/", "client/", "commands/", "content/", "mount/", "view/", "warc/")
    folder = ROOT / "webarcfs" if place.startswith(inside) else ROOT
    assert (folder / place).exists()


@pytest.mark.parametrize("test", sorted({row[3].strip("`") for row in ROW.findall(document("REQUIREMENTS"))} - {"–"}))
def test_the_test_that_shows_it_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text("utf-8")


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
