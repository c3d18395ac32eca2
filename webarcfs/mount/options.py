"""The options of `-o`: those of webarcfs, those for libfuse, and those of mount(8) that are ignored. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from webarcfs.archive.model.errors import UsageError

# Options that mount(8) handles itself, or the kernel's defaults (mount(8), "filesystem-independent mount options").


_IGNORED = re.compile(
    r"rw|defaults|(no)?auto|(no)?user|users|owner|group|_netdev|nofail|async|sync|dirsync|silent|loud"
    r"|(no)?(suid|dev|atime|diratime|relatime|strictatime|lazytime|iversion|mand|symfollow)"
    r"|default_permissions|(x-|X-).*|(comment|user|uhelper|helper)=.*"
)
_FLAGS: Mapping[str, Callable[[Options], Options]] = {
    "ro": lambda options: replace(options, read_only=True),
    "rw": lambda options: replace(options, read_only=False),
    "allow_other": lambda options: replace(options, allow_other=True),
    "noexec": lambda options: replace(options, no_programs=True),
    "exec": lambda options: replace(options, no_programs=False),
    "debug": lambda options: replace(options, debug=True),
    "stats": lambda options: replace(options, stats=True),
}
_VALUES: Mapping[str, Callable[[Options, str], Options]] = {
    "binding": lambda options, value: replace(options, binding=value),
    "group": lambda options, value: replace(options, group=value),
    "log": lambda options, value: replace(options, log=value),
}
#: webarcfs' own options, as help and man page name them → their effect.
OURS: Mapping[str, str] = {
    "ro": "for reading only",
    "rw": "for reading and adding (the default)",
    "allow_other": "other users may enter (the default for root)",
    "group=NAME": "folders belong to this group, whose members may add to them",
    "noexec": "no program on it can be started",
    "log=FILE": "where to log; `journal` is the system's log",
    "binding=NAME": "how to speak to the kernel: libfuse3 or fusepy",
    "debug": "log more; with -f libfuse tells each request as well",
    "stats": "count requests; the root's attribute user.webarc.stats tells them",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The values of `-o`. Without `binding`, the first that can be loaded is used; without `log`, the archive's own."""

    read_only: bool = False
    allow_other: bool = False
    no_programs: bool = False
    debug: bool = False
    stats: bool = False
    binding: str = ""
    group: str = ""
    log: str = ""


def parse(texts: Iterable[str], *, sloppy: bool = False) -> Options:
    """Return the options from the arguments of `-o`, each a list with commas; later ones win.

    Raises UsageError for an unknown option, unless `sloppy` (mount(8), -s).
    """
    options = Options()
    for word in (word for text in texts for word in text.split(",") if word):
        known = _apply(options, word)
        if known is None and not sloppy:
            if word == "remount":
                raise UsageError("a mount's options cannot be changed; unmount it, and mount it with the new ones")
            raise UsageError(f"there is no option {word!r}")
        options = known or options
    return options


def _apply(options: Options, word: str) -> Options | None:
    """Return `options` with one more word; None if it is unknown."""
    name, _, value = word.partition("=")
    if name in _VALUES and value:
        return _VALUES[name](options, value)
    if word in _FLAGS:
        return _FLAGS[word](options)
    return options if _IGNORED.fullmatch(word) else None


def escaped(value: str | bool) -> str | bool:
    """Return an option's value with commas and backslashes escaped for libfuse."""
    return value.replace("\\", "\\\\").replace(",", "\\,") if isinstance(value, str) else value
