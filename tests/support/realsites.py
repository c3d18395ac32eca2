"""The real sites of the tests: documentation that Debian packages install under /usr/share/doc.

A test mounts `POSTGRESQL.root` into a Site and crawls from `POSTGRESQL.starts`; where a package `is_installed` not, the
test is skipped for the reason `missing`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_DOC = Path("/usr/share/doc")


@dataclass(frozen=True, slots=True)
class RealSite:
    """A folder of files that is a web site: what to mount, and from where links lead through it."""

    package: str
    root: Path
    starts: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        """Whether the package is here with its files (a container may leave documentation out)."""
        return all((self.root / start.lstrip("/")).is_file() for start in self.starts)

    @property
    def missing(self) -> str:
        """Why a test that needs it is skipped."""
        return f"needs the Debian package {self.package} (apt-get install {self.package})"

    def files(self) -> list[str]:
        """Paths of all files below the root, relative to it, sorted; links to files and folders are followed."""
        found: list[str] = []
        for folder, _, names in os.walk(self.root, followlinks=True):
            inside = Path(folder).relative_to(self.root)
            found += [str(inside / name) for name in names if (Path(folder) / name).is_file()]
        return sorted(found)


POSTGRESQL = RealSite("postgresql-doc-15", _DOC / "postgresql-doc-15/html", ("/index.html",))
HANDBOOK = RealSite("debian-handbook", _DOC / "debian-handbook/html", ("/en-US/index.html",))
PYTHON = RealSite("python3.11-doc", _DOC / "python3.11/html", ("/index.html",))
BOOST = RealSite("libboost1.81-doc", _DOC / "libboost1.81-doc", ("/doc/html/index.html",))

ALL = (POSTGRESQL, HANDBOOK, PYTHON, BOOST)


def handbook_languages() -> tuple[str, ...]:
    """Start paths of all languages of the handbook, which do not link to each other."""
    return tuple(f"/{folder.name}/index.html" for folder in sorted(HANDBOOK.root.iterdir()) if folder.is_dir())
