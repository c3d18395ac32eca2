"""What an adapter is given, and which adapters there are. Knows no FUSE itself; no state, no threads."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import MountFailed, UsageError
from webarcfs.mount.adapters.request_stats import RequestStats
from webarcfs.mount.writing.service import Additions, Tell
from webarcfs.view.node import NodeKind
from webarcfs.view.tree.root import Tree
from webarcfs.view.tree.view import ViewListener

#: Extended attribute of the root that tells the process behind a mount; found by name, not listed.
PID = "user.webarc.pid"

#: Binding (`-o binding=`) → the module whose `serve(AdapterContext)` mounts and answers until the mount is gone, and
#: the package that holds its library. The first that can be loaded is the default.
BINDINGS: Mapping[str, tuple[str, str]] = {
    "libfuse3": ("webarcfs.mount.adapters.libfuse3.session", "libfuse3-3"),
    "fusepy": ("webarcfs.mount.adapters.fusepy.session", "libfuse2"),
}


#: Called when a mount is live.
Live = Callable[[ViewListener | None, Tell | None], None]


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """One mount to be served. `live` is called once, by the adapter, when the kernel has taken the mount over: with the
    listener to publications and the function that has the kernel look up a name again, if the kernel keeps anything.

    All nodes belong to `uid` and `gid`, and folders have `folder_mode` (0775 for a group that may add). `options` are
    the kernel's and libfuse's, true or with a value. With `requests`, the adapter counts there what reaches it.
    `additions` takes what is written; a mount without is for reading.
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
    """The `serve` of a binding; of the best that there is without a name.

    Raises UsageError when there is none of that name, MountFailed without its library.
    """
    if name:
        return _load(name)
    for each in BINDINGS:
        with contextlib.suppress(MountFailed):
            return _load(each)
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
