"""What `make dist` makes installs and runs without the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from agent.service.units import Part
from tests.support.site import Site

pytestmark = pytest.mark.crawl

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
from webarcfs.archive.config import directory
from webarcfs.archive.document import data_xml
print(directory.path("sql", "schema.sql"), directory.path("xsd", "arc.xsd"))
assert "CREATE VIEW metadata" in directory.sql("schema")
data_xml._schema()
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel is made of the source archive, so that nothing is in it that is not in that."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", str(folder), str(_ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


def test_a_wheel_has_all_that_runs_and_nothing_else(dist: Path) -> None:
    """`sql/` and `xsd/` lie at the top of the source tree, and inside the package in a wheel."""
    (wheel,) = dist.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"webarcfs/_data/{path.relative_to(_ROOT)}" for path in (_ROOT / "sql").rglob("*.sql")} <= names
    assert {f"webarcfs/_data/examples/{name}" for part in Part for name in part.templates} <= names
    for package in ("webarcfs", "agent"):
        folder = _ROOT / package
        ours = {path.relative_to(_ROOT).as_posix() for path in folder.rglob("*") if path.is_file()}
        ours = {name for name in ours if "__pycache__" not in name and "_compiled/" not in name}
        assert ours <= names, "also what is no Python: templates, style sheets, translations"
    assert not [name for name in names if name.endswith(".so")], "what is compiled is for this machine"
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]


def test_a_wheel_has_the_documents_with_all_that_they_link_to(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (top,) = {name.partition("/")[0] for name in archive.namelist() if ".data/" in name}
        folder = f"{top}/data/share/doc/webarcfs/"
        kept = {name.removeprefix(folder): archive.read(name) for name in archive.namelist() if folder in name}
    for document in ("README.md", "TROUBLESHOOTING.md"):
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", kept[document].decode())
        assert [link for link in links if link not in kept] == [], document
    assert {f"examples/{path.name}" for path in (_ROOT / "examples").iterdir() if path.is_file()} <= kept.keys()
    assert not [name for name in kept if "__pycache__" in name]


def test_a_source_archive_has_what_is_in_git(dist: Path) -> None:
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "README.md", "LICENSE", "tests/crawl/test_dist.py", "xsd/arc.xsd"} <= names
    assert not [name for name in names if "_compiled/" in name or "__pycache__" in name or ".venv" in name]


def test_the_installed_wheel_crawls_outside_of_the_checkout(dist: Path, tmp_path: Path, site: Site) -> None:
    site.add_html("/", "<title>A page</title>")
    (wheel,) = dist.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv/bin/python"
    packages = next((tmp_path / "venv/lib").glob("python*")) / "site-packages"
    # What it needs is what the tests run on, without the checkout, which they have as an editable package.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--ignore-installed", str(wheel)], check=True, capture_output=True, timeout=300)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str | Path) -> str:
        words = list(map(str, command))
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=300
        )
        return done.stdout

    assert run(python, "-P", "-c", _PROGRAM).count(str(packages)) == 2
    programs = tmp_path / "venv/bin"
    archive = tmp_path / "archive"
    run(programs / "webarc-agent", "init", archive)
    run(programs / "webarc-agent", "crawl", "--archive", archive, "--wait", "0", site.url("/"))
    assert site.host in run(programs / "webarc", "query", "--archive", archive, "status = 200")
    for program in ("webarc", "webarc-agent", "mount.webarcfs", "umount.webarcfs"):
        version = run(programs / program, "--version").split()[2].rstrip(",")
        assert f"-{version}-" in wheel.name
