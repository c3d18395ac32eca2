"""Ten built front ends that others ship, and one of our own: what they are, how they are served, what they must show.

`APPS` is the one table. A wheel is pinned by the digest of its file, and pip checks it. Nothing of a wheel is in the
repository: `python -m tests.support.built_apps` (`make apps`) downloads them into `cache()`. A wheel is never
installed, and none of its Python code runs: `app_server` serves the files of its front end from the archive itself, and
the few answers of its API that are data in `app_answers`.

    python -m tests.support.built_apps    download what is missing
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.support import app_answers
from tests.support.app_answers import CannedAnswer

_OWN_APP = Path(__file__).parent / "own_app"


class ScriptKind(StrEnum):
    """How a front end loads its scripts."""

    MODULE = "module"
    CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel on PyPI, for any platform, and the SHA-256 of its file."""

    project: str
    version: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where the file lies, once it is downloaded."""
        return cache() / f"{self.project.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def requirement(self) -> str:
        """Return the line of a requirements file."""
        return f"{self.project}=={self.version} --hash=sha256:{self.sha256}"

    def is_here(self) -> bool:
        """Whether the file is downloaded, byte for byte."""
        return self.path.is_file() and hashlib.sha256(self.path.read_bytes()).hexdigest() == self.sha256


@dataclass(frozen=True, slots=True)
class ServedFolder:
    """A folder of a source, and the path under which its files are served.

    `archive` is a ZIP file within the wheel that has the folder.
    """

    path: str
    folder: str
    archive: str = ""


@dataclass(frozen=True, slots=True)
class AppRoute:
    """A click in an app (a selector of Playwright), and the text that its DOM must show afterwards."""

    click: str
    sentence: str


@dataclass(frozen=True, slots=True)
class BuiltApp:
    """An app: where its files come from, how they are served, and what they show.

    Its DOM must show `sentences` without a click, then what each of `routes` says, in this order.
    `start_file` is the served path of the start page; `answers` may have one under `GET` and the start's path in its
    place. `has_history` serves the start page for other pages of the app, too, as servers of such apps do. `filled`
    are texts of the wheel's files that the app's own server replaces, and by what.
    """

    name: str
    source: Wheel | Path
    licence: str
    framework: str
    scripts: ScriptKind
    folders: tuple[ServedFolder, ...]
    sentences: tuple[str, ...]
    start: str = "/"
    start_file: str = ""
    routes: tuple[AppRoute, ...] = ()
    answers: Mapping[str, CannedAnswer] = field(default_factory=dict)
    filled: Mapping[str, str] = field(default_factory=dict)
    has_history: bool = True

    @property
    def host(self) -> str:
        """The host under which it is recorded; the recorder alone knows where that is."""
        return f"{self.name}.test"

    @property
    def url(self) -> str:
        """The URL of its start page."""
        return f"http://{self.host}{self.start}"

    def is_here(self) -> bool:
        """Whether its files are on this machine."""
        return self.source.is_dir() if isinstance(self.source, Path) else self.source.is_here()


def cache() -> Path:
    """Return the folder of downloaded wheels, outside the repository; `WEBARCFS_TEST_APPS` names another one."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("WEBARCFS_TEST_APPS") or base / "webarcfs" / "test-apps")


_PREFECT = Wheel("prefect", "3.9.1", "0c662e26e971b617993eed1f3d02fb8bc3c2dd47bee521b495f6e4dfeb38ae74")

APPS: tuple[BuiltApp, ...] = (
    BuiltApp(
        name="locust",
        source=Wheel("locust", "2.47.0", "a773af200bb93b1bed0b99c48c18f11343ed159803a8af3ee3ad0696b05b7d09"),
        licence="MIT",
        framework="React (Vite)",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/", "locust/webui/dist"),),
        start_file="index.html",
        sentences=("Aggregated",),
        routes=(AppRoute("text=About", "Jonatan Heyman"),),
        answers=app_answers.LOCUST,
        filled={"{{ template_args|tojson }}": app_answers.LOCUST_ARGUMENTS},
    ),
    BuiltApp(
        name="prefect-react",
        source=_PREFECT,
        licence="Apache-2.0",
        framework="React (Vite, chunks, TanStack Router)",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/", "prefect/server/ui-v2"),),
        start="/settings",
        start_file="index.html",
        sentences=("Server Settings", "3.9.1"),
        routes=(AppRoute("a:has-text('Variables')", "Palatine"),),
        answers=app_answers.PREFECT,
        filled={"/PREFECT_UI_SERVE_BASE_REPLACE_PLACEHOLDER": ""},
    ),
    BuiltApp(
        name="lilac",
        source=Wheel("lilac", "0.3.9", "fbc9f65f5517cd202ab3333ef212e1f771488273777163fb14cfb057c8067306"),
        licence="Apache-2.0",
        framework="SvelteKit",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/", "lilac/web"),),
        start_file="index.html",
        sentences=("Getting started",),
        routes=(
            AppRoute("text=Settings", "Changes will apply to all datasets"),
            AppRoute("a:has-text('Lilac')", "Getting started"),
        ),
        answers=app_answers.LILAC,
    ),
    BuiltApp(
        name="prefect",
        source=_PREFECT,
        licence="Apache-2.0",
        framework="Vue (Vite, chunks)",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/", "prefect/server/ui"),),
        start="/settings",
        start_file="index.html",
        sentences=("Server Settings", "3.9.1"),
        routes=(AppRoute("a:has-text('Variables')", "Palatine"),),
        answers=app_answers.PREFECT,
        filled={"/PREFECT_UI_SERVE_BASE_REPLACE_PLACEHOLDER": ""},
    ),
    BuiltApp(
        name="nicegui",
        source=Wheel("nicegui", "3.18.0", "a2bd51642312d98aab6d8b641245d796ff1b89da5829777170bcc488140c3dcd"),
        licence="MIT",
        framework="Vue (import map)",
        scripts=ScriptKind.MODULE,
        folders=(
            ServedFolder("/_nicegui/3.18.0/static", "nicegui/static"),
            ServedFolder("/_nicegui/3.18.0/components/leaflet", "nicegui/elements/leaflet"),
            ServedFolder("/_nicegui/3.18.0/esm/nicegui-leaflet", "nicegui/elements/leaflet/dist"),
            ServedFolder("/_nicegui/3.18.0/resources", "nicegui/elements/leaflet/dist"),
        ),
        sentences=("Made by an import map",),
        routes=(
            AppRoute("text=More of it", "Quasar shows what was folded."),
            AppRoute("button:has-text('Tiles')", "Tiles by hand"),
        ),
        answers=app_answers.NICEGUI,
    ),
    BuiltApp(
        name="esphome",
        source=Wheel(
            "esphome-dashboard", "20260425.0", "fc3351fd3ffcd6f934a7d6a3fe60e9f734bfeed132fe006c1ba2fc4b923e8a84"
        ),
        licence="Apache-2.0",
        framework="Lit (Rollup)",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/static", "esphome_dashboard/static"),),
        sentences=("Open Home Foundation",),
        routes=(AppRoute("text=New device", "A device needs to be connected to a computer"),),
        answers=app_answers.ESPHOME,
    ),
    BuiltApp(
        name="fava",
        source=Wheel("fava", "1.30.16", "4f6b6bc11a0240803cf8b4a2096fe79a012c2e2222c321a04e1cbbbca2181b3e"),
        licence="MIT",
        framework="Svelte (esbuild)",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/static", "fava/static"),),
        start="/rome/options/",
        sentences=("Beancount options",),
        routes=(
            AppRoute("a:has-text('Query')", "enter a BQL query"),
            AppRoute("a:has-text('Editor')", "Seven hills"),
        ),
        answers=app_answers.FAVA,
    ),
    BuiltApp(
        name="rapidoc",
        source=Wheel(
            "flask-openapi3-rapidoc", "9.3.8", "3785ccaeff56c8644f03d8be7a5ba1d9a2bfa9237f55b38703ff332742403fea"
        ),
        licence="MIT",
        framework="Lit (webpack)",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/static", "flask_openapi3_rapidoc/templates/rapidoc"),),
        sentences=("Seven hills by their names.",),
        routes=(AppRoute("text=One hill", "The hill with its height in metres"),),
        answers=app_answers.RAPIDOC,
    ),
    BuiltApp(
        name="swagger",
        source=Wheel("swagger-ui-bundle", "1.1.0", "f7526f7bb99923e10594c54247265839bec97e96b0438561ac86faf40d40dd57"),
        licence="Apache-2.0",
        framework="React (webpack)",
        scripts=ScriptKind.CLASSIC,
        folders=(ServedFolder("/", "swagger_ui_bundle/vendor/swagger-ui-4.15.5"),),
        start_file="index.html",
        sentences=("Seven hills by their names.",),
        routes=(AppRoute("text=One hill", "The hill with its height in metres"),),
        answers=app_answers.SWAGGER,
    ),
    BuiltApp(
        name="tensorboard",
        source=Wheel("tensorboard", "2.21.0", "7279316dcb6bd5bc391d623dea841531299cde1887310e8133bc34a996d32255"),
        licence="Apache-2.0",
        framework="Angular",
        scripts=ScriptKind.CLASSIC,
        folders=(ServedFolder("/", "", archive="tensorboard/webfiles.zip"),),
        start_file="index.html",
        sentences=("No dashboards are active for the current data set.",),
        routes=(AppRoute("settings-button button", "Reload Period"),),
        answers=app_answers.TENSORBOARD,
    ),
    BuiltApp(
        name="hills",
        source=_OWN_APP,
        licence="MIT",
        framework="none",
        scripts=ScriptKind.MODULE,
        folders=(ServedFolder("/", ""),),
        start_file="index.html",
        sentences=(
            "Seven hills, shown by modules.",
            "static imports: Salve, Rome, 7",
            "data beside the module: 7 hills",
            "module worker: the sum is 7",
            "video: 64 by 48",
        ),
        routes=(
            AppRoute("a:has-text('Hills')", "Quirinal: 61 m"),
            AppRoute("a:has-text('Palatine')", "Salve, Palatine."),
            AppRoute("#more", "Romulus chose the Palatine, all 51 m of it."),
            AppRoute("a:has-text('Map')", "tiles: 9 of 9"),
            AppRoute("a:has-text('Ask')", "Ask the server."),
            AppRoute("button:has-text('Alpha')", "JSON alpha: the first letter"),
            AppRoute("button:has-text('Beta')", "JSON beta: the second letter"),
            AppRoute("button:has-text('Form')", "form gamma: the third letter"),
            AppRoute("a:has-text('Start')", "Seven hills, shown by modules."),
        ),
        answers=app_answers.HILLS,
    ),
)


def download(apps: Sequence[BuiltApp] = APPS) -> None:
    """Download the wheels that are missing; pip takes no file with another digest. Raises CalledProcessError."""
    wheels = {app.source for app in apps if isinstance(app.source, Wheel) and not app.source.is_here()}
    if not wheels:
        return
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("".join(f"{wheel.requirement}\n" for wheel in sorted(wheels, key=str)))
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "download", *options, "-d", folder, "-r", str(requirements)]
        subprocess.run(command, check=True)
        for wheel in wheels:
            (Path(folder) / wheel.path.name).replace(wheel.path)


if __name__ == "__main__":
    download()
