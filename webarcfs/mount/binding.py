"""What an adapter is given, and which adapters there are. Knows no FUSE itself; no state, no threads."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import MountFailed, UsageError
from webarcfs.mount.tree import Tree

#: Extended attribute of the root that tells the process behind a mount; found by name, not listed.
PID = "user.webarc.pid"

#: Binding (`-o binding=`) → the module whose `serve(Mount)` mounts and answers until the mount is gone.
BINDINGS: Mapping[str, str] = {"fusepy": "webarcfs.mount.highlevel"}
DEFAULT = "fusepy"


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount to be served. `live` is called once, by the adapter, when the kernel has taken the mount over.

    All nodes belong to `uid` and `gid`. `options` are the kernel's and libfuse's, true or with a value.
    """

    archive: Archive
    tree: Tree
    point: Path
    uid: int
    gid: int
    options: Mapping[str, str | bool]
    live: Callable[[], None]


Serve = Callable[[Mount], None]


def load(name: str) -> Serve:
    """The `serve` of a binding. Raises UsageError when there is none of that name, MountFailed without its library."""
    if name not in BINDINGS:
        raise UsageError(f"there is no binding {name!r}; there is {', '.join(sorted(BINDINGS))}")
    try:
        module = importlib.import_module(BINDINGS[name])
    except (ImportError, OSError) as error:
        raise MountFailed(
            f"the binding {name} cannot be loaded ({error}); install its library: apt install libfuse2"
        ) from None
    serve: Serve = module.serve
    return serve
