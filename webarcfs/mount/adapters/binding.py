"""The context that an adapter receives, and the table of adapters. Without FUSE, state or threads."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import MountFailed, UsageError
from webarcfs.mount.adapters.requests import RequestStats
from webarcfs.vfs.node import NodeKind
from webarcfs.vfs.root import Tree
from webarcfs.vfs.view import ViewListener
from webarcfs.writing.service import Additions, Tell

#: Extended attribute of the root with the id of the mount's process; not listed.
PID = "user.webarc.pid"

#: Binding (`-o binding=`) → the module whose `serve(AdapterContext)` mounts and answers until the mount is gone, and
#: the package that holds its library. The first that can be loaded is the default.
BINDINGS: Mapping[str, tuple[str, str]] = {
    "libfuse3": ("webarcfs.mount.adapters.libfuse3.session", "libfuse3-3"),
    "fusepy": ("webarcfs.mount.adapters.fusepy_adapter", "libfuse2"),
}


#: Called when a mount is live.
Live = Callable[[ViewListener | None, Tell | None], None]


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """One mount to be served. The adapter calls `live` once, when the kernel has accepted the mount, with the listener

    to publications and the function that makes the kernel look up a name again; both None if the kernel caches nothing.
    All nodes belong to `uid` and `gid`; folders have `folder_mode` (0775 for a group that may add). `options` are
    those of the kernel and libfuse: true, or a value. The adapter counts its requests in `requests`, if given.
    `additions` accepts writes; without it, the mount is read-only.
    """

    archive: Archive
    tree: Tree
    point: Path
    uid: int
    gid: int
    options: Mapping[str, str | bool]
    live: Live
    requests: RequestStats | None = None
    folder_mode: int = NodeKind.FOLDER.value
    additions: Additions | None = None


Serve = Callable[[AdapterContext], None]


def load(name: str = "") -> Serve:
    """Return `serve` of the binding `name`; without a name, of the first binding that can be loaded.

    Raises UsageError for an unknown name, MountFailed if the library is missing.
    """
    if name:
        return _load(name)
    for binding in BINDINGS:
        with contextlib.suppress(MountFailed):
            return _load(binding)
    packages = " or ".join(package for _, package in BINDINGS.values())
    raise MountFailed(f"no binding can be loaded; install a library: apt install {packages}")


def _load(name: str) -> Serve:
    if name not in BINDINGS:
        raise UsageError(f"there is no binding {name!r}; there is {', '.join(sorted(BINDINGS))}")
    module, package = BINDINGS[name]
    try:
        serve: Serve = importlib.import_module(module).serve
    except (ImportError, OSError) as error:
        raise MountFailed(
            f"the binding {name} cannot be loaded ({error}); install its library: apt install {package}"
        ) from None
    return serve
